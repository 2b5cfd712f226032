"""From a command line to a running front end: gather the settings, answer what needs no session, choose who runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from oi_tui.conversation_commands import notebook_named, open_notebook, run_command
from oi_tui.engine import profiles, trust
from oi_tui.engine.errors import EngineError, SettingsError
from oi_tui.engine.secrets import with_stored_key
from oi_tui.engine.settings import Settings
from oi_tui.engine.settings_sources import (
    Layer,
    checked,
    explain,
    from_environment,
    merge,
    nearest,
    schema,
    with_values,
)
from oi_tui.flags import CommandLine, UsageError, all_flags, say

EXIT_FAILED = 1
EXIT_USAGE = 2

AskTrust = Callable[[profiles.ProfileFile, str, tuple[str, ...]], bool]
"""Asked with a file, its SHA-256 and what it wants; answers whether the user trusts it."""

KEY_ON_COMMAND_LINE = (
    "A key on the command line can be read by every user of this machine. Better: export OI_TUI_API_KEY, "
    "or let oi-tui ask for it."
)


@dataclass(frozen=True, slots=True)
class Task:
    """What the line front end is to do. Without a `prompt` it holds a conversation."""

    prompt: str | None = None
    json: bool = False


def launch(line: CommandLine) -> int:
    """Do what the command line says. Returns the exit status; raises `UsageError`."""
    try:
        _change_folder(line.text("cwd"))
        if (code := _answer_without_settings(line)) is not None:
            return code
        if (code := run_command(line)) is not None:
            return code
        settings = gather(line, os.environ, ask=_ask_trust if _has_terminal() else None)
        if line.has("settings"):
            print_settings(with_stored_key(settings))
            return 0
    except SettingsError as error:
        print(f"oi-tui: {error}", file=sys.stderr)
        return EXIT_USAGE
    return _start(line, settings)


def gather(line: CommandLine, environ: Mapping[str, str], *, ask: AskTrust | None = None) -> Settings:
    """The settings of this run: command line, environment, profile, default, in this order.

    `ask` decides about files not trusted yet; without it they are not. Raises `UsageError` for a bad value of a flag,
    `SettingsError` for the rest.
    """
    command_line = _command_line_layer(line)
    environment, notes = from_environment(environ)
    notes = [*line.notes, *notes]
    if line.settings.get("llm.api_key"):
        notes.append(KEY_ON_COMMAND_LINE)
    named = line.text("profile") or environ.get("OI_TUI_PROFILE")
    file = profiles.find(named) if named else profiles.find_default()
    layers = [command_line, environment]
    completions = None
    if file is not None:
        profile = _read_profile(file, ask)
        layers.append(profile.layer)
        notes += profile.notes
        completions = profile.completions
        if profile.withheld:
            names = ", ".join(profile.withheld)
            notes.append(
                f"Profile {file.path} is not in your profile folder, so this was left out: {names}. "
                f"To allow it: oi-tui --trust-profile {file.path}"
            )
    notes += _notes_about_languages(layers)
    settings = merge(layers, profile=named, notes=notes)
    if completions is not None:
        settings = with_values(settings, {"llm.completions": completions}, f"profile {named}")
    return settings


def _command_line_layer(line: CommandLine) -> Layer:
    values = {}
    for name, value in line.settings.items():
        try:
            values[name] = checked(name, value)
        except SettingsError as error:
            spec = schema()[name]
            guess = nearest(str(value), spec.choices)
            raise UsageError(f"{error}" + (f" Did you mean {guess}?" if guess else "")) from None
    if unknown := _unknown_languages(values.get("languages")):
        raise UsageError(unknown[0])
    return Layer("command line", values)


def _notes_about_languages(layers: Sequence[Layer]) -> list[str]:
    """What is no language in the strongest layer that names any. A profile may bring languages of its own later on."""
    for layer in layers:
        if "languages" in layer.values:
            origin = layer.origins.get("languages", layer.origin)
            return [f"{origin}: {line}" for line in _unknown_languages(layer.values["languages"])]
    return []


def _unknown_languages(wanted: Sequence[str] | None) -> list[str]:
    """A line for each name that is neither a built-in language nor an installed Jupyter kernel."""
    if not wanted:
        return []
    from oi_tui.engine.languages.catalogue import built_in_entries
    from oi_tui.engine.languages.jupyter_kernels import installed_kernels, with_kernels

    entries = with_kernels(built_in_entries(), installed_kernels(), wanted)
    known = {name for entry in entries for name in (entry.name, *entry.aliases)}
    lines = []
    for tag in wanted:
        name = tag.strip().lower()
        if name and name not in known:
            guess = nearest(name, [entry.name for entry in entries])
            hint = f"Did you mean {guess}?" if guess else f"There are: {', '.join(entry.name for entry in entries)}."
            lines.append(f"{tag!r} is no language here. {hint}")
    return lines


def _read_profile(file: profiles.ProfileFile, ask: AskTrust | None) -> profiles.Profile:
    try:
        profile = profiles.read(file)
        wanted = tuple(f"set {name}" for name in profile.withheld)
    except profiles.NotTrusted:
        if ask is None:
            raise
        wanted = ("run its Python code",)
    if not wanted or ask is None:
        return profile
    digest = profiles.digest_of_file(file)
    if ask(file, digest, wanted):
        trust.trust(digest, file.path)
    return profiles.read(file)


def _ask_trust(file: profiles.ProfileFile, digest: str, wanted: tuple[str, ...]) -> bool:
    """Ask on the terminal whether to trust a file. No answer is a no."""
    from oi_tui.rendering.sanitise import sanitise

    print(
        f"You have not trusted the profile {sanitise(str(file.path))} yet. It wants to: {', '.join(wanted)}.\n"
        f"SHA-256 {digest}",
        file=sys.stderr,
    )
    print("Trust this file as it is now? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _change_folder(folder: str | None) -> None:
    if folder is None:
        return
    try:
        os.chdir(Path(folder).expanduser())
    except OSError as error:
        raise UsageError(f"--cwd {folder}: {error.strerror}") from None


# -- what needs no session --------------------------------------------------------------------------------------------


def _answer_without_settings(line: CommandLine) -> int | None:
    if line.has("profiles"):
        print_profiles()
        return 0
    if line.has("reset_profile"):
        return _reset_profile(line.text("reset_profile") or profiles.DEFAULT)
    if (path := line.text("trust_profile")) is not None:
        return _trust_profile(path)
    return None


def print_profiles() -> None:
    """The profiles that can be named, and where they are."""
    lines = [f"Your profiles:    {profiles.user_folder()}", f"Shipped profiles: {profiles.shipped_folder()}", ""]
    for file in profiles.available():
        lines.append(f"  {file.name:<16} {'yours' if file.home is profiles.Home.USER else 'shipped'}")
    lines += ["", "Use one with --profile NAME. A file of yours takes the place of a shipped one of the same name."]
    say("\n".join(lines))


def _reset_profile(name: str) -> int:
    from oi_tui.engine.profile_saving import reset

    old = reset(name)
    if old is None:
        say(f"Profile {name} is the shipped one already.")
    else:
        say(f"Profile {name} is the shipped one again. Yours was kept as {old}.")
    return 0


def _trust_profile(path: str) -> int:
    file = profiles.ProfileFile(Path(path).expanduser(), profiles.Home.ELSEWHERE)
    digest = profiles.digest_of_file(file)
    trust.trust(digest, file.path)
    say(f"Trusted as it is now: {file.path}\nSHA-256 {digest}")
    return 0


def print_settings(settings: Settings) -> None:
    """Every setting with its value and origin, keys hidden."""
    rows = explain(settings)
    names, origins = (max(len(row[column]) for row in rows) for column in (0, 2))
    say("\n".join(f"{name:<{names}}  {origin:<{origins}}  {value}" for name, value, origin in rows))
    for note in settings.notes:
        print(note, file=sys.stderr)


# -- starting ---------------------------------------------------------------------------------------------------------


def _start(line: CommandLine, settings: Settings) -> int:
    notebook = notebook_named(line)
    task = _task(line) if notebook is None else Task(None, False)
    wants_lines = task.prompt is not None or task.json or line.has("plain")
    if not wants_lines and not _has_terminal():
        print(
            "oi-tui: the full screen needs a terminal, and this is none. "
            'Give a task with -p "…" (add -y to let code run), or talk line by line with --plain.',
            file=sys.stderr,
        )
        return EXIT_USAGE
    if not wants_lines and _is_dumb_terminal():
        print("This terminal cannot draw a screen, so here is the line prompt (--plain).", file=sys.stderr)
        wants_lines = True
    sessions = None
    if wants_lines or line.has("resume") or notebook is not None:
        from oi_tui.engine.store.sessions import StoredSessions

        sessions = StoredSessions()
        try:
            if line.has("resume"):
                sessions.resume(line.text("resume") or "last")
            if notebook is not None:
                open_notebook(sessions, notebook, keep=settings.conversation_history)
        except EngineError as error:
            print(f"oi-tui: {error}", file=sys.stderr)
            return EXIT_FAILED
    if wants_lines and sessions is not None:
        from oi_tui.plain import run_plain

        try:
            return run_plain(with_stored_key(settings), task, new_session=sessions)
        finally:
            sessions.close()
    from oi_tui.app import run_app  # it looks for a stored key itself, after its first paint: a keyring may be slow

    return run_app(settings, make_session=sessions, browse=line.has("conversations"))


def _task(line: CommandLine) -> Task:
    """The task in words. Raises `UsageError` where the command line gives it twice or not at all."""
    given = line.text("prompt")
    if line.words:
        if given is not None:
            raise UsageError(f"the task is given twice: with -p, and as {line.words[0]!r}")
        if len(line.words) == 1 and line.words[0].lower() in {flag.name for flag in all_flags()}:
            raise UsageError(f"did you mean --{line.words[0].lower()}? A task in one such word goes behind -p")
        given = " ".join(line.words)
    if line.has("stdin"):
        piped = _read_stdin()
        given = piped if given is None else f"{given}\n\n{piped}"
    if given is not None and not given.strip():
        raise UsageError("the task is empty")
    if line.has("json") and given is None:
        raise UsageError('--json needs a task: -p "…" or --stdin')
    return Task(given, line.has("json"))


def _read_stdin() -> str:
    """All of standard input; from then on the terminal, if there is one, takes its place to answer questions."""
    text = sys.stdin.buffer.read().decode("utf-8", "replace") if sys.stdin is not None else ""
    if sys.stdout.isatty() and os.name == "posix":
        try:
            terminal = os.open("/dev/tty", os.O_RDONLY)
        except OSError:
            return text
        os.dup2(terminal, 0)
        os.close(terminal)
        sys.stdin = open(0, encoding="utf-8", errors="replace", closefd=False)
    return text


def _has_terminal() -> bool:
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def _is_dumb_terminal() -> bool:
    return os.name == "posix" and os.environ.get("TERM", "") in ("", "dumb")
