"""Who may know whom, checked by what really gets imported."""

from __future__ import annotations

import subprocess
import sys

import pytest


def modules_after(statement: str) -> set[str]:
    """Top-level names and oi_tui modules in `sys.modules` of a fresh Python after this statement."""
    code = f"import sys\n{statement}\nprint('\\n'.join(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return set(done.stdout.split())


@pytest.mark.parametrize("module", ["oi_tui.engine.session", "oi_tui.engine.interpreter", "oi_tui.engine.lmc"])
def test_the_engine_has_never_heard_of_the_screen(module: str) -> None:
    loaded = modules_after(f"import {module}")
    assert not loaded & {"textual", "rich", "textual_image", "oi_tui.app", "oi_tui.plain", "oi_tui.rendering"}


def test_a_session_loads_neither_litellm_nor_a_kernel_client_before_they_are_needed() -> None:
    loaded = modules_after(
        "from oi_tui.engine.session import Session; from oi_tui.engine.settings import Settings; Session(Settings())"
    )
    assert not loaded & {"litellm", "jupyter_client", "zmq", "IPython", "PIL", "pygments"}


def test_the_version_imports_next_to_nothing() -> None:
    loaded = modules_after(
        "import contextlib, io\nfrom oi_tui.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit): main(['--version'])"
    )
    heavy = {
        "textual",
        "rich",
        "litellm",
        "jupyter_client",
        "yaml",
        "asyncio",
        "pygments",
        "PIL",
        "oi_tui.engine.settings",
    }
    assert not loaded & heavy


def test_litellm_stays_in_its_worker_process() -> None:
    assert "litellm" not in modules_after("import oi_tui.engine.llm.worker_model")
