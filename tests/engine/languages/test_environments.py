"""Which Python runs the code, and what is said when it cannot."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from oi_tui.engine.errors import KernelStartFailed
from oi_tui.engine.languages import guardian
from oi_tui.engine.languages.environments import KernelSpecs, choose_environment, explain_start
from oi_tui.engine.languages.kernel_process import private_folder
from oi_tui.engine.languages.place import environment_for_code
from oi_tui.engine.languages.python_kernel import PythonKernel
from tests.engine.languages.running import run

SPEC = {"argv": ["/opt/r/bin/R", "-f", "{connection_file}", "{resource_dir}/x"], "display_name": "R 4", "language": "R"}


def no_specs() -> KernelSpecs:
    return {}


def never() -> KernelSpecs:
    raise AssertionError("looking kernels up is slow and was not needed")


@pytest.fixture(scope="module")
def bare_venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment without ipykernel."""
    folder = tmp_path_factory.mktemp("project") / ".venv"
    venv.create(folder, with_pip=False, symlinks=True)
    return folder


def test_without_a_wish_it_is_the_python_that_runs_oi_tui() -> None:
    chosen = choose_environment(None, find_specs=never)
    assert chosen.argv[0] == sys.executable and "{connection_file}" in chosen.argv
    version = ".".join(map(str, sys.version_info[:3]))
    assert chosen.describe().startswith(f"Python {version} (")


def test_a_virtual_environment_is_chosen_by_its_folder_or_its_python(bare_venv: Path) -> None:
    for wish in (str(bare_venv), str(bare_venv / "bin" / "python"), f"./{bare_venv.name}"):
        chosen = choose_environment(wish, find_specs=never, cwd=bare_venv.parent)
        assert chosen.argv[0] == str(bare_venv / "bin" / "python")
        assert chosen.describe() == f"Python {'.'.join(map(str, sys.version_info[:3]))} (.venv)"
        assert chosen.env["VIRTUAL_ENV"] == str(bare_venv)
        assert chosen.env["PATH"].startswith(str(bare_venv / "bin") + os.pathsep)
    by_name = choose_environment(".venv", find_specs=no_specs, cwd=bare_venv.parent)
    assert by_name.argv[0] == str(bare_venv / "bin" / "python")


def test_a_name_is_a_jupyter_kernel_first() -> None:
    spec = {**SPEC, "interrupt_mode": "message", "env": {"A": "1"}, "resource_dir": "/share/r"}
    chosen = choose_environment("ir", find_specs=lambda: {"ir": spec})
    assert chosen.argv == ("/opt/r/bin/R", "-f", "{connection_file}", "/share/r/x")
    assert chosen.interrupt_mode == "message" and chosen.env == {"A": "1"} and chosen.language == "r"
    assert (
        choose_environment("py", find_specs=lambda: {"py": {"argv": ["python", "-m", "k"]}}).argv[0] == sys.executable
    )


@pytest.mark.parametrize(
    ("wish", "reason"),
    [
        ("nonsense", "no kernel called 'nonsense'. Installed Jupyter kernels: ir"),
        ("/no/such/python", "There is no /no/such/python"),
        ("~/nowhere", "There is no"),
        ("empty/", "is not a virtual environment"),
        ("./text", "cannot be executed"),
        ("./broken", "The Python of .* is gone"),
        ("silent", "does not say how it is started"),
    ],
)
def test_what_cannot_be_used_is_named_with_the_way_out(wish: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").write_text("x")
    (tmp_path / "broken" / "bin").mkdir(parents=True)
    (tmp_path / "broken" / "bin" / "python").symlink_to("/gone/python3")
    with pytest.raises(KernelStartFailed, match=reason) as caught:
        choose_environment(wish, find_specs=lambda: {"ir": SPEC, "silent": {"argv": []}}, cwd=tmp_path)
    assert "--kernel" in str(caught.value) and "\n" not in str(caught.value)


def test_the_reason_of_a_failed_start_is_its_last_word() -> None:
    chosen = choose_environment(None, find_specs=never)
    crashed = explain_start(chosen, "Traceback (most recent call last):\nImportError: libzmq.so.5\n\n", "ended")
    assert "did not start: ImportError: libzmq.so.5. Choose another" in str(crashed)
    assert "did not start: it ended with status 3. Choose" in str(explain_start(chosen, "", "it ended with status 3."))
    assert "did not start: Out of luck! Choose" in str(explain_start(chosen, "Out of luck!\n", "ended"))


def test_the_folder_of_the_sockets_is_private_and_its_path_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 120)
    long.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    folder = private_folder()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700 and len(str(folder / "k-1")) < 100
    folder.rmdir()


@pytest.fixture
def nothing_left() -> Iterator[None]:
    """A failed start leaves no process behind."""
    yield
    mark = f"FAILED_START={os.getpid()}".encode()
    for pid in guardian.process_table():
        try:
            assert mark not in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            pass


def environment(home: Path) -> dict[str, str]:
    return {**os.environ, "HOME": str(home), "FAILED_START": str(os.getpid())}


@pytest.mark.kernel
@pytest.mark.usefixtures("nothing_left")
async def test_an_environment_without_ipykernel_says_how_to_install_it(bare_venv: Path, tmp_path: Path) -> None:
    kernel = PythonKernel(str(bare_venv), env=environment(tmp_path))
    await kernel.warm()  # never raises
    with pytest.raises(KernelStartFailed, match="has no ipykernel") as caught:
        await run(kernel, "1")
    assert f"{bare_venv}/bin/python -m pip install ipykernel" in str(caught.value)
    await kernel.aclose()


async def test_what_cannot_run_is_known_before_it_is_used(bare_venv: Path, tmp_path: Path) -> None:
    ends = tmp_path / "python"
    ends.write_text("#!/bin/sh\necho 'numpy is broken' >&2\nexit 1\n")
    ends.chmod(0o755)
    for wish, reason in (
        ("/no/such/python", "There is no /no/such/python. Choose"),
        ("no-such-kernel", "no kernel called 'no-such-kernel'"),
        (str(bare_venv), "has no ipykernel. Install it with"),
        (str(ends), "does not work as a Python: numpy is broken. Choose"),
        (shutil.which("ls"), "does not work as a Python"),
        (sys.executable, ""),
        (None, ""),
    ):
        kernel = PythonKernel(wish, cwd=tmp_path, env=environment(tmp_path))
        for _ in range(2):
            said = kernel.problem()
            assert reason in said and "\n" not in said and bool(said) == bool(reason)


@pytest.mark.kernel
async def test_a_start_that_failed_in_the_background_is_a_known_problem(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\n[ "$1" = -c ] && exec {sys.executable} "$@"\necho "no licence" >&2\nexit 1\n')
    python.chmod(0o755)
    kernel = PythonKernel(str(python), env=environment(tmp_path))
    assert kernel.problem() == ""  # as far as can be seen from outside
    await kernel.warm()
    assert "did not start: no licence. Choose" in kernel.problem()
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    assert kernel.problem() == ""
    await kernel.aclose()


@pytest.mark.kernel
@pytest.mark.usefixtures("nothing_left")
async def test_a_python_that_breaks_or_hangs_at_its_start_is_reported(tmp_path: Path) -> None:
    python = tmp_path / "python"
    for script, reason in (
        ("#!/bin/sh\necho 'ImportError: numpy is broken' >&2\nexit 1\n", "ImportError: numpy is broken"),
        ("#!/bin/sh\necho 'waiting for a licence' >&2\nsleep 600\n", "not ready after 1 s.*waiting for a licence"),
        ("#!/no/such/interpreter\n", "cannot be started: No such file"),
    ):
        python.write_text(script)
        python.chmod(0o755)
        kernel = PythonKernel(str(python), env=environment(tmp_path), start_timeout=1.0)
        with pytest.raises(KernelStartFailed, match=reason):
            await run(kernel, "1")
        await kernel.aclose()


@pytest.mark.kernel
@pytest.mark.parametrize("home", ["/proc", "/sys", "a file", "read only"])
async def test_a_home_that_takes_no_files_does_not_stop_the_kernel(home: str, tmp_path: Path) -> None:
    place = Path(home) if home.startswith("/") else tmp_path / home
    if home == "a file":
        place.write_text("")
    elif home == "read only":
        (place / ".ipython").mkdir(parents=True)
        (place / ".ipython").chmod(0o500)
    elif not place.is_dir():
        pytest.skip("another system")
    env = {name: value for name, value in environment(place).items() if name != "IPYTHONDIR"}
    kernel = PythonKernel(cwd=tmp_path, env=env)
    ran = await run(kernel, "import os\nprint(os.environ['HOME'], get_ipython().profile_dir.location)")
    assert ran.output.startswith(str(place))
    folder = Path(ran.output.split()[-1])
    assert "oi-tui-" in str(folder) or home == "read only"  # which root may write to all the same
    await kernel.aclose()
    assert not folder.exists() or home == "read only"


@pytest.mark.kernel
async def test_a_start_that_failed_is_tried_again(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    kernel = PythonKernel(str(python), env=environment(tmp_path))
    with pytest.raises(KernelStartFailed):
        await run(kernel, "1")
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    assert (await run(kernel, "print('up')")).output == "up\n"
    await kernel.aclose()


@pytest.mark.kernel
async def test_a_folder_that_is_gone_is_reported(tmp_path: Path) -> None:
    kernel = PythonKernel(cwd=tmp_path / "gone")
    with pytest.raises(KernelStartFailed, match=r"working folder .*gone does not exist"):
        await run(kernel, "1")
    await kernel.aclose()


@pytest.mark.kernel
async def test_a_jupyter_kernel_is_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = tmp_path / "kernels" / "mine"
    spec.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    kernel_json = {"argv": argv, "display_name": "Mine", "language": "python", "env": {"WHO": "mine"}}
    (spec / "kernel.json").write_text(json.dumps(kernel_json))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    kernel = PythonKernel("mine", env=environment(tmp_path))
    ran = await run(kernel, "import os; print(os.environ['WHO'])")
    assert ran.output == "mine\n"
    assert kernel.description == f"Python {'.'.join(map(str, sys.version_info[:3]))} (Mine)"
    await kernel.aclose()


@pytest.mark.kernel
async def test_a_broken_file_in_the_working_folder_does_not_stop_the_kernel(tmp_path: Path) -> None:
    for name in ("random", "json", "zmq", "typing"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('mine')")
    kernel = PythonKernel(cwd=tmp_path, env=environment(tmp_path))
    assert (await run(kernel, "print('up')")).output == "up\n"
    await kernel.aclose()


@pytest.mark.kernel
async def test_the_keys_of_model_providers_stay_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("GITHUB_TOKEN", "the user's own")
    for env, expected in (
        (None, "None the user's own"),
        (environment_for_code(keep_keys=True), "sk-secret the user's own"),
    ):
        kernel = PythonKernel(env=env)
        code = "import os; print(os.environ.get('OPENAI_API_KEY'), os.environ['GITHUB_TOKEN'])"
        assert (await run(kernel, code)).output == expected + "\n"
        await kernel.aclose()


def test_choosing_a_kernel_imports_no_jupyter_client() -> None:
    code = """
import sys
from oi_tui.engine.languages.python_kernel import PythonKernel
print(PythonKernel().description.startswith("Python "), "jupyter_client" in sys.modules, "traitlets" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True False False\n"
