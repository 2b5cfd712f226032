"""A real OpenAI-compatible HTTP server on the loopback, scripted: for tests, benchmarks and trying things by hand.

    async with OpenAIServer(text("Hello")) as server:
        settings = ModelSettings(model="openai/test", api_base=server.url, api_key="sk-test")

    python -m tests.openai_server --port 0 --script code

Every request is recorded and checked with `validate_request`; one that a provider would refuse is answered with 400 and
noted in `problems`. Only the standard library is used.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import socket
import struct
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from types import TracebackType
from typing import Any

from tests import openai_replies as replies
from tests.openai_replies import *  # noqa: F403  (the scripts are this module's vocabulary)
from tests.openai_replies import SCRIPTS, Failure, Reply, send_json
from tests.openai_validation import InvalidRequest, validate_request

__all__ = ["InvalidRequest", "OpenAIServer", "Recorded", "replies", "validate_request"]


@dataclass
class Recorded:
    """One request as it arrived, and what became of its answer. Times are `time.monotonic()` seconds."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    received_at: float = field(default_factory=time.monotonic)
    first_delta_at: float | None = None
    closed_by_client_at: float | None = None
    problem: str | None = None
    finished: bool = False

    @property
    def messages(self) -> list[dict[str, Any]]:
        return self.body.get("messages", [])

    @property
    def key(self) -> str:
        """The key the client sent."""
        return self.headers.get("authorization", "").removeprefix("Bearer ")


class _Exchange:
    """One request on one connection."""

    def __init__(self, request: Recorded, writer: asyncio.StreamWriter) -> None:
        self.request = request
        self._writer = writer
        self._chunked = False
        self.started = False
        self.was_reset = False

    async def start(self, status: int, headers: Mapping[str, str], *, chunked: bool) -> None:
        phrase = next((s.phrase for s in HTTPStatus if s.value == status), "Error")
        lines = [f"HTTP/1.1 {status} {phrase}", *(f"{k}: {v}" for k, v in headers.items())]
        if chunked:
            lines.append("Transfer-Encoding: chunked")
        self._chunked, self.started = chunked, True
        self._writer.write("\r\n".join(lines).encode() + b"\r\n\r\n")
        await self._writer.drain()

    async def send(self, data: bytes) -> None:
        if self._chunked:
            data = b"%x\r\n%b\r\n" % (len(data), data)
        self._writer.write(data)
        await self._writer.drain()

    async def finish(self) -> None:
        if self._chunked:
            self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    def mark_first_delta(self) -> None:
        if self.request.first_delta_at is None:
            self.request.first_delta_at = time.monotonic()

    def reset(self) -> None:
        """Break the connection so that the client sees ECONNRESET."""
        sock = self._writer.get_extra_info("socket")
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.was_reset = True
        self._writer.transport.abort()


class OpenAIServer:
    """Answers POST …/chat/completions (and any other path, unchecked) by a script, and lists one model.

    Give it replies (used in order, the last one repeated) or one function from the request to a reply.
    """

    def __init__(
        self, *script: Reply | Callable[..., Any], port: int = 0, strict: bool = True, host: str = "127.0.0.1"
    ):
        self._given = script
        self._port = port
        self._host = host
        self.strict = strict
        self.requests: list[Recorded] = []
        self._changed = asyncio.Condition()
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """The value for `api_base`."""
        assert self._server is not None, "the server is not started"
        return f"http://{self._host}:{self._server.sockets[0].getsockname()[1]}/v1"

    @property
    def problems(self) -> list[str]:
        """Why requests were invalid; empty when all were fine."""
        return [r.problem for r in self.requests if r.problem]

    @property
    def open_connections(self) -> int:
        return len(self._connections)

    async def __aenter__(self) -> OpenAIServer:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, self._host, self._port, limit=2**26)

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    async def wait_until(self, condition: Callable[[OpenAIServer], object], timeout: float = 20) -> None:
        """Wait for something about the recorded requests. Raises `TimeoutError`."""
        async with asyncio.timeout(timeout), self._changed:
            await self._changed.wait_for(lambda: bool(condition(self)))

    def use(self, *script: Reply | Callable[..., Any]) -> None:
        """Go on with another script."""
        self._given = script

    # -- connections

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._serve_requests(reader, writer)
        finally:
            self._connections.discard(task)
            if writer.transport.get_write_buffer_size():  # nobody will read it: do not wait for that
                writer.transport.abort()
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            await self._tell()

    async def _serve_requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ahead = b""
        while True:
            head = ahead + await reader.readuntil(b"\r\n\r\n")
            request = self._parse_head(head)
            length = int(request.headers.get("content-length", "0"))
            raw = await reader.readexactly(length) if length else b""
            try:
                request.body = json.loads(raw) if raw else {}
            except ValueError:
                request.problem = "the body is not JSON"
            self.requests.append(request)
            await self._tell()
            exchange = _Exchange(request, writer)
            watch = asyncio.create_task(reader.read(1))
            answer = asyncio.create_task(self._answer(exchange))
            try:
                await asyncio.wait({watch, answer}, return_when=asyncio.FIRST_COMPLETED)
                if not answer.done() and watch.result() == b"":
                    request.closed_by_client_at = time.monotonic()
                    await self._tell()
                    return
                try:
                    await answer
                except ConnectionError:
                    request.closed_by_client_at = time.monotonic()
                    return
                request.finished = not exchange.was_reset
            finally:
                answer.cancel()
                if not watch.done():
                    watch.cancel()
                await asyncio.gather(answer, watch, return_exceptions=True)
            if exchange.was_reset:
                return
            ahead = b"" if watch.cancelled() else watch.result()
            if watch.done() and not watch.cancelled() and not ahead:
                return

    async def _answer(self, exchange: _Exchange) -> None:
        request = exchange.request
        if request.method == "GET":
            await self._list_models(exchange)
            return
        if request.problem is None and request.path.endswith("/chat/completions"):
            try:
                validate_request(request.body)
            except InvalidRequest as problem:
                request.problem = str(problem)
        if request.problem and self.strict:
            await Failure(400, f"Invalid request: {request.problem}")(exchange)
        else:
            await self._reply_to(request)(exchange)

    async def _list_models(self, exchange: _Exchange) -> None:
        path = exchange.request.path
        if path.endswith("/models"):
            models = [{"id": "test-model", "object": "model", "owned_by": "tests"}]
            await send_json(exchange, 200, {"object": "list", "data": models})
        elif path.endswith("/api/tags"):
            await send_json(exchange, 200, {"models": [{"name": "test-model"}]})
        else:
            await Failure(404)(exchange)

    def _reply_to(self, request: Recorded) -> Reply:
        given = self._given
        if len(given) == 1 and not isinstance(given[0], Reply):
            chosen = given[0](request)
        else:
            chosen = given[0]
            if len(given) > 1:
                self._given = given[1:]
        return chosen

    @staticmethod
    def _parse_head(head: bytes) -> Recorded:
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ", 2)
        headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in lines if line)}
        return Recorded(method, path, headers, {})

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()


async def _run(port: int, name: str, delay: float, quiet: bool) -> None:
    chosen = SCRIPTS[name]()
    parts = (chosen,) if callable(chosen) else tuple(chosen)
    server = OpenAIServer(*parts, port=port)
    await server.start()
    print(f"{server.url}  script: {name}", flush=True)
    print(f"  oi-tui --model openai/test --api_base {server.url}", flush=True)
    seen = 0
    while True:
        await server.wait_until(lambda s, seen=seen: len(s.requests) > seen, timeout=10**8)
        for request in server.requests[seen:]:
            if not quiet:
                last = request.messages[-1] if request.messages else {}
                print(f"{request.method} {request.path} {json.dumps(last)[:200]}", flush=True)
        seen = len(server.requests)
        await asyncio.sleep(delay)
        for problem in server.problems:
            print(f"  invalid: {problem}", flush=True)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.openai_server", description=__doc__.split("\n")[0])
    parser.add_argument("--port", type=int, default=0, help="0 picks a free one")
    parser.add_argument(
        "--script", choices=sorted(SCRIPTS), default="code", metavar="NAME", help=", ".join(sorted(SCRIPTS))
    )
    parser.add_argument("--quiet", action="store_true", help="print the address only")
    options = parser.parse_args(argv)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_run(options.port, options.script, 0.05, options.quiet))
    return 0


if __name__ == "__main__":
    sys.exit(main())
