"""The command line: its flags as a table, and reading them.

Imports next to nothing, so that `--version` and `--help` answer at once; that is also why argparse is not used. Names
are Open Interpreter's where it has the flag. Underscores and hyphens are the same in long flags. Every switch that is a
setting has a `--no_…` form, so that the command line can overrule a profile.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

USAGE = 'usage: oi-tui [-m MODEL] [--profile NAME] [-y] [-p "task" | --plain | --json | --stdin] …   (oi-tui --help)'


class UsageError(Exception):
    """The command line cannot be understood. The text says why, in one line."""


class Flag:
    """One flag. `setting` is the dotted setting it sets; without one it is an option of the program itself.

    `value` names the value in the help and is empty for switches; `optional` values may be left out.
    """

    __slots__ = ("group", "help", "hidden", "name", "optional", "setting", "short", "value")

    def __init__(
        self,
        name: str,
        short: str = "",
        value: str = "",
        help: str = "",
        *,
        setting: str = "",
        optional: bool = False,
        hidden: bool = False,
    ) -> None:
        self.name = name
        self.short = short
        self.value = value
        self.help = help
        self.setting = setting
        self.optional = optional
        self.hidden = hidden
        self.group = ""

    @property
    def is_setting_switch(self) -> bool:
        return bool(self.setting) and not self.value


def _setting(name: str, short: str = "", value: str = "", help: str = "", *, hidden: bool = False) -> Flag:
    """A flag that sets the setting of the same name."""
    return Flag(name, short, value, help, setting=name, hidden=hidden)


def _llm(name: str, short: str, value: str, help: str, setting: str = "") -> Flag:
    """A flag that sets a setting of the model."""
    return Flag(name, short, value, help, setting=f"llm.{setting or name}")


GROUPS: dict[str, list[Flag]] = {
    "What to do": [
        Flag("prompt", "p", "TASK", "do one task and exit (bare words mean the same)"),
        Flag("plain", "pl", "", "talk at a line prompt instead of the full screen"),
        Flag("stdin", "s", "", "read the task from standard input; with -p it is added to the task"),
        Flag("json", "", "", "print LMC chunks, one JSON object per line, for programs"),
        Flag("cwd", "", "FOLDER", "work in this folder"),
    ],
    "Approval": [
        _setting("auto_run", "y", "", "run code without asking"),
        _setting("safe_mode", "safe", "MODE", "scan code before it runs: off, ask, auto; anything but off always asks"),
    ],
    "Model": [
        _llm("model", "m", "NAME", "as LiteLLM names it: openai/gpt-5.4, ollama/qwen3, …; demo is the scripted one"),
        _llm("api_base", "ab", "URL", "address of the endpoint"),
        _llm("api_key", "ak", "KEY", "key for it; safer in the environment, where no process list shows it"),
        _llm("api_version", "av", "VERSION", "version of its API (Azure)"),
        _llm("temperature", "t", "NUMBER", "0 is the default"),
        _llm("context_window", "cw", "TOKENS", "what the model can take"),
        _llm("max_tokens", "x", "TOKENS", "the longest answer"),
        _llm("max_budget", "b", "USD", "stop before this session costs more"),
        _llm(
            "llm_supports_functions",
            "lsf",
            "",
            "the model calls tools (--no_… : it writes fenced code)",
            "supports_functions",
        ),
        _llm("llm_supports_vision", "lsv", "", "the model sees pictures", "supports_vision"),
        _setting("offline", "o", "", "contact nothing but the model"),
    ],
    "Behaviour": [
        _setting("custom_instructions", "ci", "TEXT", "added to the system message"),
        _setting("system_message", "sm", "TEXT", "replaces the system message"),
        _setting("loop", "", "", "let the model go on until it says it is done"),
        _setting("max_output", "xo", "CHARS", "how much output the model gets to read"),
        _setting(
            "kernel", "", "NAME", "Python to run: a kernel's name, a python, or the folder of a virtual environment"
        ),
        _setting("languages", "", "LIST", "only these languages: python,shell"),
        Flag("resume", "", "ID", "go on with a conversation: last, or the beginning of its id", optional=True),
        Flag("conversations", "", "", "begin with the list of conversations"),
        Flag("all", "", "", "with export: every conversation"),
        Flag("force", "", "", "with export: replace files that are there"),
        Flag("no_history", "", "", "do not store this conversation"),
        _setting("images", "", "HOW", "pictures in the terminal: auto, kitty, sixel, half, off"),
        _setting("theme", "", "NAME", "colours of the full screen"),
        _setting("verbose", "v", "", "tell more"),
        _setting("highlight_active_line", "", "", "", hidden=True),
        _setting("conversation_history", "", "", "", hidden=True),
    ],
    "Profiles and settings": [
        Flag("profile", "", "NAME", "start from this profile: a name or a path"),
        Flag("demo", "", "", "the embedded demo: scripted, no AI, real code"),
        Flag("fast", "f", "", "profile fast"),
        Flag("local", "l", "", "profile local"),
        Flag("vision", "vi", "", "profile vision"),
        Flag("settings", "", "", "print every setting, its value and where it comes from"),
        Flag("profiles", "", "", "list the profiles and where they are"),
        Flag("reset_profile", "", "NAME", "put a shipped profile back; yours is kept beside it", optional=True),
        Flag("trust_profile", "", "FILE", "trust this file, as it is now, to do all a profile can"),
    ],
    "About": [
        Flag("help", "h", "", "this text"),
        Flag("version", "V", "", "the version"),
    ],
}

PROFILE_FLAGS = ("demo", "fast", "local", "vision")

INSTEAD = {"debug_mode": "verbose", "debug": "verbose", "nhl": "no_highlight_active_line"}
"""Open Interpreter's flags that have another name here."""

NEEDLESS = {
    "disable_telemetry": "oi-tui has no telemetry.",
    "dt": "oi-tui has no telemetry.",
    "contribute_conversation": "oi-tui uploads no conversations.",
    "multi_line": "Several lines always work.",
    "ml": "Several lines always work.",
}
"""Open Interpreter's switches that change nothing here, and why."""


class CommandLine:
    """What the user asked for: `settings` by dotted name, `options` of the program, bare `words`, `notes` to show."""

    __slots__ = ("notes", "options", "settings", "words")

    def __init__(self) -> None:
        self.settings: dict[str, str | bool] = {}
        self.options: dict[str, str | bool] = {}
        self.words: list[str] = []
        self.notes: list[str] = []

    def text(self, option: str) -> str | None:
        """The value of an option that takes one; None if it was not given."""
        value = self.options.get(option)
        return value if isinstance(value, str) else None

    def has(self, option: str) -> bool:
        return bool(self.options.get(option))


def all_flags() -> list[Flag]:
    return [flag for group in GROUPS.values() for flag in group]


def parse(arguments: Sequence[str]) -> CommandLine:
    """Read the command line. Values of settings are still text, to be checked. Raises `UsageError`."""
    longs = {flag.name: flag for flag in all_flags()}
    shorts = {flag.short: flag for flag in all_flags() if flag.short}
    line = CommandLine()
    rest = list(arguments)
    while rest:
        token = rest.pop(0)
        if token == "--":
            line.words += rest
            break
        if not token.startswith("-") or token == "-":
            line.words.append(token)
            continue
        written, equals, attached = token.partition("=")
        if written.lstrip("-").replace("-", "_") in NEEDLESS:
            line.notes.append(f"{written} is not needed: {NEEDLESS[written.lstrip('-').replace('-', '_')]}")
            continue
        flag, negated = _find(written, longs, shorts)
        value = attached if equals else None
        if flag.value and not negated and value is None:
            value = _next_value(flag, written, rest, longs, shorts)
        _take(line, flag, written, value, negated)
    return line


def _find(written: str, longs: dict[str, Flag], shorts: dict[str, Flag]) -> tuple[Flag, bool]:
    """The flag that is meant, and whether in its `--no_…` form. Raises `UsageError` with the nearest one."""
    name = written.lstrip("-").replace("-", "_")
    name = INSTEAD.get(name, name)
    if not written.startswith("--") and name in shorts:
        return shorts[name], False
    if name in longs and (written.startswith("--") or len(name) > 2):
        return longs[name], False
    if name.startswith("no_") and name[3:] in longs and longs[name[3:]].is_setting_switch:
        return longs[name[3:]], True
    from difflib import get_close_matches

    near = get_close_matches(name, [*longs, *(f"no_{n}" for n, f in longs.items() if f.is_setting_switch)], 1, 0.6)
    raise UsageError(f"unknown flag {written}" + (f"; did you mean --{near[0]}?" if near else ""))


def _next_value(
    flag: Flag, written: str, rest: list[str], longs: dict[str, Flag], shorts: dict[str, Flag]
) -> str | None:
    """The value behind the flag. A known flag is never taken for a value."""
    candidate = rest[0] if rest else None
    is_flag = candidate is not None and candidate.startswith("-") and _is_known(candidate, longs, shorts)
    if candidate is None or is_flag or (flag.optional and candidate.startswith("-")):
        if flag.optional:
            return None
        raise UsageError(f"{written} needs a value: {written} {flag.value}")
    return rest.pop(0)


def _is_known(token: str, longs: dict[str, Flag], shorts: dict[str, Flag]) -> bool:
    name = token.partition("=")[0].lstrip("-").replace("-", "_")
    return name in (longs if token.startswith("--") else shorts)


def _take(line: CommandLine, flag: Flag, written: str, value: str | None, negated: bool) -> None:
    if negated and value is not None:
        raise UsageError(f"{written} takes no value")
    if flag.setting:
        line.settings[flag.setting] = (not negated) if value is None else value
    elif flag.name in PROFILE_FLAGS:
        line.options["profile"] = flag.name
        if flag.name == "demo":
            line.settings["llm.model"] = "demo"  # also where the environment names another one
    elif flag.value:
        line.options[flag.name] = True if value is None else value
    elif value is not None:
        raise UsageError(f"{written} takes no value")
    elif flag.name == "no_history":
        line.settings["conversation_history"] = False
    else:
        line.options[flag.name] = True


def help_text() -> str:
    """All flags, grouped, in lines of at most 100 columns where the terms allow it."""
    lines = [USAGE, ""]
    for title, flags in GROUPS.items():
        lines.append(f"{title}:")
        for flag in flags:
            if not flag.hidden:
                short = f"-{flag.short}, " if flag.short else ""
                value = f" [{flag.value}]" if flag.optional else f" {flag.value}" if flag.value else ""
                term = f"  {short}--{flag.name}{value}"
                lines.append(f"{term:<34} {flag.help}" if len(term) < 35 else f"{term}\n{'':<34} {flag.help}")
        lines.append("")
    lines += [
        "Settings come from the command line, then OI_TUI_… variables, then the profile, then the defaults.",
        "Exit status: 0 done, 1 failed or code was declined, 2 wrong usage, 130 interrupted.",
        "Commands: oi-tui export ID|last|--all FORMAT PATH · oi-tui import [FOLDER] · oi-tui open FILE.ipynb",
        "Without flags the full screen opens. In scripts: oi-tui -y -p 'how big is this folder?'",
    ]
    return "\n".join(lines)


def say(text: str) -> None:
    """Print, quietly even when nobody reads any more (`oi-tui --help | head -1`)."""
    try:
        print(text, flush=True)
    except OSError:
        discard_output()


def discard_output() -> None:
    """Send what is still to be printed to nowhere: the reader is gone, and Python would complain when it exits."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
