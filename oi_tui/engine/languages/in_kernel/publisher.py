"""The thread of the kernel that sends what was published: it loses nothing, and listens to nobody.

ipykernel's publisher drops messages when the reader is slow, the last one of a run included; and it opens a TCP port
for what forked children publish.
"""

from __future__ import annotations

import importlib
import sys
import threading
from typing import Any

QUEUED_MESSAGES = 256
"""Messages that may wait for a slow reader; then the sending thread waits too."""


def install(ip: Any, options: dict[str, Any]) -> None:
    """`options["folder"]` is the kernel's private folder. Raises for an ipykernel that is built differently."""
    stdout: Any = sys.stdout
    wait_for_the_reader(stdout.pub_thread)
    private_pipe(stdout.pub_thread, options["folder"])


def wait_for_the_reader(pub_thread: Any) -> None:
    """A full queue makes the publishing thread wait instead of dropping messages."""
    zmq: Any = importlib.import_module("zmq")
    done = threading.Event()

    def configure() -> None:
        pub_thread.socket.setsockopt(zmq.XPUB_NODROP, 1)
        pub_thread.socket.setsockopt(zmq.SNDHWM, QUEUED_MESSAGES)
        done.set()

    pub_thread.schedule(configure)
    if not done.wait(5):
        raise RuntimeError("the publishing thread does not answer")


def private_pipe(pub_thread: Any, folder: str) -> None:
    """Forked children publish through a TCP port that everybody on the machine can reach; make it a private socket."""
    if not folder or not getattr(pub_thread, "_pipe_flag", False):
        return
    zmq: Any = importlib.import_module("zmq")
    if not zmq.has("ipc"):
        return
    from zmq.eventloop.zmqstream import ZMQStream

    address = f"ipc://{folder}/fork"
    done = threading.Event()

    def rebind() -> None:
        context = pub_thread.socket.context
        pipe_in = context.socket(zmq.PULL)
        pipe_in.linger = 0
        pipe_in.bind(address)
        old, pub_thread._pipe_in = pub_thread._pipe_in, ZMQStream(pipe_in, pub_thread.io_loop)
        pub_thread._pipe_in.on_recv(pub_thread._handle_pipe_msg)
        old.close()
        done.set()

    def pipe_out() -> Any:
        context = zmq.Context()
        socket = context.socket(zmq.PUSH)
        socket.linger = 3000
        socket.connect(address)
        return context, socket

    pub_thread.schedule(rebind)
    if done.wait(5):
        pub_thread._setup_pipe_out = pipe_out
