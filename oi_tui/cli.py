"""The `oi-tui` command: what can be answered without loading anything is answered here; `launch` does the rest."""

from __future__ import annotations

import os
import sys

from oi_tui._version import __version__
from oi_tui.flags import USAGE, UsageError, help_text, parse, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

EXIT_USAGE = 2
EXIT_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program. Returns the exit status: 0 done, 1 failed, 2 usage, 130 interrupted."""
    _prepare_streams()
    try:
        line = parse(sys.argv[1:] if arguments is None else arguments)
        if line.has("version"):
            say(f"oi-tui {__version__}")
            return 0
        if line.has("help"):
            say(help_text())
            return 0
        from oi_tui.launch import launch

        return launch(line)
    except UsageError as error:
        print(f"oi-tui: {error}\n{USAGE}", file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    finally:
        if arguments is None:
            _ignore_interrupts()


def _ignore_interrupts() -> None:
    """All is done but the interpreter's own tidying, of which a Ctrl-C would make a traceback."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _prepare_streams() -> None:
    """Streams that exist and never fail on a character that the terminal's encoding lacks."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by whoever started us
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
