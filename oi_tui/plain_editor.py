"""`$VISUAL` or `$EDITOR` for a block of code, from the line front end."""

from __future__ import annotations

import signal
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

_EXTENSIONS = {"python": "py", "shell": "sh", "javascript": "js", "ruby": "rb", "r": "R", "html": "html"}


def edit_in_editor(code: str, language: str, say: Callable[[str], object]) -> str:
    """The code after the user has edited it; unchanged, with a line of reason said, where that is not possible."""
    from oi_tui.external_editor import NoEditor, editor_command  # it imports Textual, which is not needed before

    try:
        command = editor_command()
    except NoEditor as error:
        say(str(error))
        return code
    with tempfile.TemporaryDirectory(prefix="oi-tui-edit-") as folder:  # 0700
        path = Path(folder) / f"code.{_EXTENSIONS.get(language, 'txt')}"
        path.write_text(code, encoding="utf-8", errors="surrogatepass", newline="")
        before = signal.signal(signal.SIGINT, lambda _number, _frame: None)  # Ctrl-C is the editor's
        try:
            status = subprocess.run([*command, str(path)], check=False).returncode
            text = path.read_bytes().decode("utf-8", "replace").replace("\r\n", "\n")
        except OSError as error:
            say(f"{command[0]} cannot be used: {error.strerror}.")
            return code
        finally:
            signal.signal(signal.SIGINT, before)
    if status != 0:
        how = "was stopped" if status < 0 else f"ended with status {status}"
        say(f"{command[0]} {how}, so nothing was changed.")
        return code
    if not text.strip():
        say("The editor left nothing, and there is no empty code to run. To decline it, answer n.")
        return code
    return text if code.endswith("\n") else text.removesuffix("\n")
