"""The line front end: a conversation at a prompt, one task, or chunks for programs, over the same session."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from oi_tui.engine.approval import CodeProposal, Decision, InputCancelled, InputRequest
from oi_tui.engine.errors import EngineError, NoModel
from oi_tui.engine.lmc import Chunk
from oi_tui.engine.magic import is_magic, run_magic, shell_line
from oi_tui.engine.private_files import data_folder
from oi_tui.engine.secrets import with_stored_key
from oi_tui.engine.session import Session
from oi_tui.engine.settings import Settings
from oi_tui.flags import discard_output
from oi_tui.plain_engine import Asked, Chunks, EngineThread, Turn
from oi_tui.plain_files import FileShelf
from oi_tui.plain_output import JsonPrinter, LinePrinter, wants_colour
from oi_tui.plain_signals import Ended, Signals
from oi_tui.plain_terminal import CannotAsk, LineEditing, Terminal
from oi_tui.plain_width import width_of
from oi_tui.prompt_history import PromptHistory

if TYPE_CHECKING:
    from oi_tui.launch import Task

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_HANGUP = 129
EXIT_INTERRUPTED = 130
CLOSING_PATIENCE = 15.0
"""Seconds for kernels and workers to end; what is left dies with the process."""

NO_MODEL = NoModel(
    "No model is chosen.",
    "Name one with --model, or see the embedded demo with --profile demo. oi-tui --help lists all.",
)


def run_plain(settings: Settings, task: Task, *, new_session: Callable[[Settings], Session] = Session) -> int:
    """Run the line front end and return the exit status."""
    front = PlainFront(settings, task, new_session)
    try:
        with front.signals:
            return front.run()
    except KeyboardInterrupt:
        front.leave_line()
        return EXIT_INTERRUPTED
    except Ended as ended:
        front.leave_line()
        return ended.status
    except BrokenPipeError:
        discard_output()
        return EXIT_FAILED
    except EngineError as error:
        front.printer.say(f"oi-tui: {error}")
        return EXIT_FAILED
    except OSError as error:
        discard_output()
        if error.errno == errno.EIO:  # the terminal is gone
            return EXIT_HANGUP
        with suppress(OSError):
            print(f"oi-tui: the output cannot be written: {error.strerror or error}.", file=sys.stderr, flush=True)
        return EXIT_FAILED
    finally:
        front.close()


class PlainFront:
    """One run of the line front end: a printer, somebody to ask, and a session in the engine's thread."""

    def __init__(self, settings: Settings, task: Task, new_session: Callable[[Settings], Session]) -> None:
        self._settings = settings
        self._make_session = new_session
        self._task = task
        self.printer: LinePrinter | JsonPrinter
        self._asks: Terminal | CannotAsk
        if task.json:
            self.printer = JsonPrinter(sys.stdout, sys.stderr)
            self._asks = CannotAsk(self.printer)
        else:
            self.printer = printer = _line_printer(settings)
            has_terminal = sys.stdin is not None and sys.stdin.isatty()
            self._asks = Terminal(printer) if has_terminal else CannotAsk(printer)
        self._can_ask = isinstance(self._asks, Terminal)
        self.signals = Signals(on_stop=lambda: self.printer.announce("Stopping. Ctrl-C again quits."))
        self._engine: EngineThread | None = None
        self._session: Session | None = None

    # -- one task, or a conversation ------------------------------------------------------------------------------

    def run(self) -> int:
        """Raises `KeyboardInterrupt`, `Ended`, `EngineError` and `OSError` of the streams."""
        for note in self._settings.notes:
            self.printer.say(f"note: {note}")
        self._settings = self._choose_model()
        self._open()
        if self._task.prompt is not None:
            with self.signals.working():
                return self._run_task(self._task.prompt)
        return self._converse()

    def _choose_model(self) -> Settings:
        """The settings with a model in them. Raises `NoModel`."""
        if self._settings.llm.model is not None or self._settings.llm.completions is not None:
            return self._settings
        if isinstance(self._asks, Terminal) and sys.stdout.isatty():
            from oi_tui.plain_first_run import choose_model

            if (chosen := choose_model(self._settings, self._asks)) is not None:
                return with_stored_key(chosen)
        raise NO_MODEL

    def _open(self) -> None:
        self._engine = EngineThread(on_fault=self._note_fault)
        self._session = self._engine.call(self._new_session())
        self._engine.start(self._session.prewarm())

    async def _new_session(self) -> Session:
        """Sessions are made where they live."""
        return self._make_session(self._settings)

    def _run_task(self, prompt: str) -> int:
        self._take_turn(prompt)
        if self.printer.failure is not None or self._asks.has_declined:
            return EXIT_FAILED
        return EXIT_DONE

    def _converse(self) -> int:
        editing = self._prepare_editing()
        while True:
            try:
                line = self._read_message()
            except EOFError:
                self.leave_line()
                return EXIT_DONE
            if not line:
                continue
            with self.signals.working():
                editing.remember(line)
                self._handle(line)
            if self._can_ask:
                self.printer.tell("")

    def _read_message(self) -> str:
        """Raises `EOFError`."""
        if isinstance(self._asks, Terminal):
            with self.signals.asking():
                return self._asks.read_message()
        line = sys.stdin.readline() if sys.stdin is not None else ""
        if not line:
            raise EOFError
        return line.strip()

    def _prepare_editing(self) -> LineEditing:
        """Set the prompt up and say where the user is."""
        if not self._can_ask:
            return LineEditing(None)
        model = self._settings.llm.model or "a function of your profile"
        asked = "runs without asking" if self._settings.auto_run else "runs only after you say y"
        self.printer.tell(f"oi-tui, line mode. Model: {model}. Code {asked}. %help lists commands, Ctrl-D ends.")
        keep = self._settings.conversation_history
        return LineEditing(PromptHistory(data_folder() / "prompt_history.jsonl" if keep else None))

    def _handle(self, line: str) -> None:
        if (command := shell_line(line)) is not None:
            self._run_own(command)
        elif is_magic(line):
            assert self._engine is not None and self._session is not None
            result = self._engine.call(run_magic(self._session, line))
            if isinstance(self.printer, LinePrinter):
                self.printer.verbose = self._session.settings.verbose
            self.printer.tell(result.text)
        else:
            self._take_turn(line)

    # -- turns ----------------------------------------------------------------------------------------------------

    def _take_turn(self, message: str) -> None:
        session = self._session
        assert session is not None
        self._follow(lambda approve, answer: session.respond(message, approve=approve, answer=answer))

    def _run_own(self, command: str) -> None:
        """A shell line that the user typed: it needs no second approval."""
        session = self._session
        assert session is not None

        async def approve(proposal: CodeProposal) -> Decision:
            return Decision.run()

        if command:
            self._follow(lambda _, answer: session.run_code("shell", command, approve=approve, answer=answer))

    def _follow(self, chunks: Chunks) -> None:
        """Print a turn as it happens and answer what it asks. Raises `KeyboardInterrupt` after stopping a task."""
        assert self._engine is not None
        self.printer.failure = None
        turn = Turn(self._engine, chunks)
        with self.signals.during(turn):
            for batch in turn:
                self._deal_with(turn, batch)
        if turn.error is not None:
            self._note_error(turn.error)
        if turn.is_cancelled and self._session is not None:
            self.printer.print(self._session.take_notices())
        self.printer.end_turn()
        if turn.is_cancelled:
            self.printer.say("Stopped.")
            if self._task.prompt is not None:
                raise KeyboardInterrupt

    def _deal_with(self, turn: Turn, batch: list[Chunk | Asked]) -> None:
        chunks: list[Chunk] = []
        for item in batch:
            if not isinstance(item, Asked):
                chunks.append(item)
                continue
            self.printer.print(chunks)
            chunks = []
            if not turn.is_cancelled:
                self._answer(turn, item)
        self.printer.print(chunks)

    def _answer(self, turn: Turn, asked: Asked) -> None:
        try:
            with self.signals.asking():
                turn.reply(asked, self._ask(asked.about))
        except InputCancelled as cancelled:
            turn.reply(asked, cancelled)
        except KeyboardInterrupt:
            self.signals.stop(turn)

    def _ask(self, about: CodeProposal | InputRequest) -> Decision | str:
        if isinstance(about, CodeProposal):
            return self._asks.approve(about)
        return self._asks.input(about)

    def leave_line(self) -> None:
        """The shell's prompt shall not begin behind ours."""
        try:
            self.printer.end_line()
        except OSError:
            discard_output()

    # -- faults and the end ---------------------------------------------------------------------------------------

    def _note_error(self, error: Exception) -> None:
        """One line; of a fault of this program the whole story, but only for those who asked for it."""
        self.printer.failure = str(error)
        if isinstance(error, EngineError):
            self.printer.say(f"error: {error}")
            return
        self.printer.say(f"error: a fault in oi-tui: {type(error).__name__}: {error} (--verbose tells more)")
        if self._settings.verbose:
            traceback.print_exception(error)

    def _note_fault(self, text: str) -> None:
        if self._settings.verbose:
            self.printer.say(f"note: {text}")

    def close(self) -> None:
        """End the session and everything it started. A signal meanwhile ends at once."""
        if self._engine is None:
            return
        with suppress(Exception, KeyboardInterrupt, Ended):
            if self._session is not None:
                self._engine.call(self._session.aclose(), timeout=CLOSING_PATIENCE)
        with suppress(Exception, KeyboardInterrupt, Ended):
            self._engine.close()


def _line_printer(settings: Settings) -> LinePrinter:
    return LinePrinter(
        sys.stdout,
        sys.stderr,
        FileShelf(keep=settings.conversation_history),
        colour=wants_colour(sys.stdout, os.environ),
        verbose=settings.verbose,
        width=width_of(sys.stdout),
    )
