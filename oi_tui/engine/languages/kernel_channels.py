"""The sockets between oi-tui and one kernel."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from zmq.asyncio import Context, Socket
from zmq.constants import SocketType

from oi_tui.engine.languages.kernel_messages import KernelMessage, Wire

Channel: TypeAlias = Literal["shell", "iopub", "stdin", "control"]

_KINDS: Mapping[Channel, int] = {
    "shell": SocketType.DEALER,
    "control": SocketType.DEALER,
    "stdin": SocketType.DEALER,
    "iopub": SocketType.SUB,
}
_NUMBERS: Mapping[str, int] = {"shell": 1, "iopub": 2, "stdin": 3, "control": 4, "hb": 5}
_QUEUED_MESSAGES = 128
"""Of at most 64 KiB each; then the kernel waits."""
_SLICE = 0.008
"""Seconds of work on messages before the rest of the program gets its turn."""


@dataclass(frozen=True, slots=True)
class Connection:
    """Where a kernel listens: IPC sockets in a private folder, or ports of the loopback interface."""

    transport: Literal["ipc", "tcp"]
    address: str
    """The common beginning of the socket files, or the IP address."""
    key: str
    ports: Mapping[str, int]

    @classmethod
    def over_ipc(cls, folder: Path, key: str) -> Connection:
        return cls("ipc", str(folder / "k"), key, _NUMBERS)

    @classmethod
    def over_tcp(cls, key: str) -> Connection:
        """For systems without IPC sockets: five free ports, and signatures against everybody else on the machine."""
        sockets = [socket.socket() for _ in _NUMBERS]
        try:
            for each in sockets:
                each.bind(("127.0.0.1", 0))
            ports = [each.getsockname()[1] for each in sockets]
        finally:
            for each in sockets:
                each.close()
        return cls("tcp", "127.0.0.1", key, dict(zip(_NUMBERS, ports, strict=True)))

    def url(self, channel: str) -> str:
        separator = ":" if self.transport == "tcp" else "-"
        return f"{self.transport}://{self.address}{separator}{self.ports[channel]}"

    def to_json(self, kernel_name: str) -> dict[str, Any]:
        """The content of a Jupyter connection file."""
        return {
            **{f"{name}_port": port for name, port in self.ports.items()},
            "ip": self.address,
            "key": self.key,
            "transport": self.transport,
            "signature_scheme": "hmac-sha256",
            "kernel_name": kernel_name,
        }


class Channels:
    """Sends requests to a kernel and hands every message from it to `receive`, in the running event loop.

    `receive(channel, message)` is called in the order of arrival on each channel. `pause` stops reading what the code
    prints; a kernel that can wait then does so as soon as the queues are full. Other kernels drop what they cannot
    send: from them everything is taken at once, whatever memory it costs.
    """

    def __init__(
        self, connection: Connection, receive: Callable[[Channel, KernelMessage], None], *, can_wait: bool
    ) -> None:
        self.can_wait = can_wait
        self._wire = Wire(connection.key.encode())
        self._receive = receive
        self._context = Context(io_threads=1)
        self._sockets: dict[Channel, Socket] = {}
        self._flowing = asyncio.Event()
        self._flowing.set()
        identity = self._wire.session.encode()
        for channel, kind in _KINDS.items():
            self._sockets[channel] = self._open(connection.url(channel), kind, identity)
        self._readers = [asyncio.create_task(self._read(channel)) for channel in self._sockets]

    def send(self, channel: Channel, kind: str, content: Mapping[str, Any]) -> str:
        """Send a request; returns its id. Never waits: nothing we send is big enough to."""
        message_id, frames = self._wire.encode(kind, content)
        self._sockets[channel].send_multipart(frames)  # it is queued when this returns; the future says no more
        return message_id

    def pause(self) -> None:
        """Stop reading output until `resume`."""
        if self.can_wait:
            self._flowing.clear()

    def resume(self) -> None:
        self._flowing.set()

    @property
    def is_paused(self) -> bool:
        return not self._flowing.is_set()

    async def aclose(self) -> None:
        """Close all sockets at once, dropping what is under way. Idempotent."""
        readers, self._readers = self._readers, []
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
        for each in self._sockets.values():
            each.close(linger=0)
        self._sockets.clear()
        self._context.term()

    def _open(self, url: str, kind: int, identity: bytes) -> Socket:
        new = self._context.socket(kind)
        new.linger = 0
        new.reconnect_ivl = 5  # milliseconds; we connect before the kernel listens
        new.reconnect_ivl_max = 100
        if kind == SocketType.SUB:
            new.rcvhwm = _QUEUED_MESSAGES if self.can_wait else 0
            new.subscribe(b"")
        else:
            new.identity = identity  # the kernel finds our stdin by the identity of our shell
        new.connect(url)
        return new

    async def _read(self, channel: Channel) -> None:
        source = self._sockets[channel]
        turn_began = time.monotonic()
        while True:
            if channel == "iopub" and self.is_paused:
                await self._flowing.wait()
            frames = await source.recv_multipart()
            try:
                message = self._wire.decode(frames)
            except (ValueError, KeyError, AttributeError):
                continue  # not from our kernel, or beyond repair
            self._receive(channel, message)
            # A message that is already there is received without giving way.
            if time.monotonic() - turn_began > _SLICE:
                await asyncio.sleep(0)
                turn_began = time.monotonic()
