"""Jupyter kernels that are not IPython: the same client, without what only our set-up in the kernel can do."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from oi_tui.engine.errors import KernelDied
from oi_tui.engine.languages import kernel_process
from oi_tui.engine.languages.environments import choose_environment
from oi_tui.engine.languages.kernel_language import KernelLanguage
from oi_tui.engine.languages.python_kernel import PythonKernel
from tests.engine.languages.running import Answers, Running, run

pytestmark = [pytest.mark.kernel, pytest.mark.asyncio(loop_scope="module")]

# The smallest kernel that the protocol allows: it says back what it is told, and obeys a few words.
ECHO = """
import os, sys, time
from ipykernel.kernelapp import IPKernelApp
from ipykernel.kernelbase import Kernel

class Echo(Kernel):
    implementation = implementation_version = banner = "echo"
    language_info = {"name": "echo", "version": "0.1", "mimetype": "text/plain", "file_extension": ".txt"}

    async def do_execute(self, code, silent, store_history=True, user_expressions=None, allow_stdin=False, **more):
        self._allow_stdin = allow_stdin
        if code == "wait":
            self.say("waiting")
            try:
                time.sleep(600)
            except KeyboardInterrupt:
                code = "interrupted"
        elif code == "ask":
            code = self.raw_input("What? ")
        elif code == "die":
            os._exit(3)
        elif code == "flood":
            for n in range(500):
                self.say(f"{n}\\n")
            code = ""
        elif code == "show":
            content = {"data": {"text/html": "<b>hi</b>"}, "metadata": {}}
            self.send_response(self.iopub_socket, "display_data", content)
            code = ""
        self.say(code)
        return {"status": "ok", "execution_count": self.execution_count, "payload": [], "user_expressions": {}}

    def say(self, text):
        self.send_response(self.iopub_socket, "stream", {"name": "stdout", "text": text})

IPKernelApp.launch_instance(kernel_class=Echo)
"""


class EchoLanguage(KernelLanguage):
    name = "echo"
    title = "echo kernel"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def echo(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EchoLanguage]:
    home = tmp_path_factory.mktemp("home")
    (home / "echo.py").write_text(ECHO)
    argv = [sys.executable, str(home / "echo.py"), "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "Echo", "language": "echo"}

    def choose() -> object:
        return choose_environment("echo", find_specs=lambda: {"echo": spec})

    echo = EchoLanguage(choose, cwd=home, env={**os.environ, "HOME": str(home)})  # type: ignore[arg-type]
    await echo.warm()
    yield echo
    await echo.aclose()


async def test_it_runs_and_says_what_it_is(echo: EchoLanguage) -> None:
    assert echo.description == "echo 0.1 (Echo)"
    ran = await run(echo, "\nhello")
    assert ran.output == "\nhello" and ran.lines == [2] and ran[-1].content is None
    assert (await run(echo, "show")).for_model == "hi\n"


async def test_it_may_ask(echo: EchoLanguage) -> None:
    answers = Answers("nothing")
    assert (await run(echo, "ask", answer=answers)).output == "What? nothing\nnothing"
    assert [request.prompt for request in answers.requests] == ["What? "]


async def test_it_can_be_interrupted(echo: EchoLanguage) -> None:
    running = Running(echo, "wait")
    await running.prints("waiting")
    await echo.interrupt()
    assert (await running.end()).output == "waitinginterrupted"


async def test_many_messages_arrive(echo: EchoLanguage) -> None:
    assert (await run(echo, "flood")).output == "".join(f"{n}\n" for n in range(500))


async def test_its_death_is_told(echo: EchoLanguage, tmp_path: Path) -> None:
    with pytest.raises(KernelDied, match="status 3"):
        await run(echo, "die")
    ran = await run(echo, "again")
    assert ran.output == "again" and "The echo kernel ended with status 3" in ran.notices[0]


async def test_without_ipc_sockets_signed_tcp_does_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_process, "HAS_IPC", False)
    kernel = PythonKernel(env={**os.environ, "HOME": str(tmp_path)})
    answers = Answers("there")
    assert (await run(kernel, "print('hello', input())", answer=answers)).output == "there\nhello there\n"
    assert kernel._kernel is not None and kernel._kernel.process.connection.url("shell").startswith("tcp://127.0.0.1:")
    await kernel.aclose()
