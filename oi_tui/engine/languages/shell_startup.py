"""How each kind of shell is started, and how it is made to say when a block has ended.

An interactive shell runs a command before each prompt. Ours reports the status, then waits in that command until there
is a new block, and only then reads the line that starts it. So the shell never takes for a command what was typed
for a program that ended before it read it. Besides this nothing of the user's shell is changed. Scripts that read
`~/.bashrc` again often put their own command in its place: each block is followed by a file, `hooks`, which puts ours
back.

What the shells report, each with a line on the FIFO `events`:

    version <number>    once
    at <line> <file>    from the DEBUG trap, while lines are traced
    hot                 too many commands in a second: tracing is given up for this block
    exit <status>       the script leaves the shell, which starts itself again with the same variables
    cwd <folder>
    end <status> <options>
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HOT = 300
"""Commands in a second after which a block is not traced any more: each costs 50 µs."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """A kind of shell."""

    name: str

    traces: bool = False
    """Whether it reports its lines by itself, when asked to."""

    def write_startup(self, folder: Path, program: str, *, own_startup: bool) -> None:
        """Write into the private folder the start-up file(s), `hooks`, and `rejoin`: how a stray shell comes back."""
        raise NotImplementedError

    def command(self, program: str, folder: Path) -> Sequence[str]:
        """How to start it."""
        raise NotImplementedError

    def environment(self, folder: Path) -> Mapping[str, str]:
        """Variables that make it find its start-up files."""
        return {}


class Bash(Dialect):
    """bash 3.2 and later."""

    __slots__ = ()

    def write_startup(self, folder: Path, program: str, *, own_startup: bool) -> None:
        events, commands, state, closing = (
            shlex.quote(str(folder / name)) for name in ("events", "commands", "state", "closing")
        )
        own = "[ -r ~/.bashrc ] && . ~/.bashrc" if own_startup else ":"
        rejoin = f". {shlex.quote(str(folder / 'rejoin'))}"
        again = shlex.join(self.command(program, folder))
        # `$_` is put back, because `mkdir x && cd $_` is common.
        trace = (
            '{ __oi_tui_last=$_; [[ $BASH_SOURCE != "$__oi_tui_block" ]] || {'
            ' [[ $SECONDS == "${__oi_tui_second-}" ]] || { __oi_tui_second=$SECONDS __oi_tui_count=0; };'
            f" if ((++__oi_tui_count <= {HOT})); then"
            f' builtin printf \'at %s %s\\n\' "$LINENO" "$BASH_SOURCE" >{events};'
            f' else trap - DEBUG; builtin echo hot >{events}; fi; }}; : "$__oi_tui_last"; }} 2>/dev/null'
        )
        prompt = (
            "{ __oi_tui_status=$?; trap - DEBUG; set +T; [[ -t 0 ]] || exec </dev/tty; "
            f'builtin printf \'cwd %s\\nend %s %s\\n\' "$PWD" "$__oi_tui_status" "$-" >{events}; '
            "unset __oi_tui_status __oi_tui_last __oi_tui_second __oi_tui_count __oi_tui_block; "
            f"builtin read -r __oi_tui_block <{commands}; "
            f"[[ $__oi_tui_block != /* ]] || {{ set -T; trap {shlex.quote(trace)} DEBUG; }}; }} 2>/dev/null"
        )
        # A script that leaves the shell (`exit 1`, or a failure after `set -e`) would take the variables with it.
        _write(
            folder / "rejoin",
            f"{{ printf 'exit %s\\n' \"$?\" >{events}; [ ! -e {closing} ] || exit; trap - DEBUG EXIT; set +eux",
            f"{{ declare -p; declare -f; alias -p; shopt -p; }} >{state}; }} 2>/dev/null",
            f"exec {again} </dev/tty >/dev/tty 2>&1",
        )
        _write(
            folder / "startup",
            f"if [ -f {state} ]; then {{ . {state}; rm -f {state}; }} 2>/dev/null; else {own}; fi",
            "set +H +o history; set +eux; unset HISTFILE MAILCHECK",
            f"trap - DEBUG ERR RETURN; trap {shlex.quote(rejoin)} EXIT",
            f". {shlex.quote(str(folder / 'hooks'))}",
            f'printf "version %s\\n" "${{BASH_VERSION%%(*}}" >{events}',
        )
        _write(
            folder / "hooks",
            "{ __oi_tui_status=$?; unset PROMPT_COMMAND PS0; PS1= PS2=",
            f"PROMPT_COMMAND={shlex.quote(prompt)}",
            "return $__oi_tui_status; } 2>/dev/null",
        )

    def command(self, program: str, folder: Path) -> Sequence[str]:
        return [program, "--noediting", "--rcfile", str(folder / "startup"), "-i"]


class Zsh(Dialect):
    """zsh 5."""

    __slots__ = ()

    def write_startup(self, folder: Path, program: str, *, own_startup: bool) -> None:
        events, commands = (shlex.quote(str(folder / name)) for name in ("events", "commands"))
        home = '"${OI_TUI_ZDOTDIR:-$HOME}"'
        own = f"[[ -r {home}/%s ]] && . {home}/%s" if own_startup else ":"
        prompt = (
            f'oi_tui_prompt() {{ printf \'cwd %s\\nend %s %s\\n\' "$PWD" "$?" "$-" >{events}; '
            f"local block; read -r block <{commands}; }}"
        )
        _write(folder / ".zshenv", own.replace("%s", ".zshenv"))
        _write(
            folder / ".zshrc",
            own.replace("%s", ".zshrc"),
            "unset ZDOTDIR HISTFILE MAILCHECK",
            "[[ -z ${OI_TUI_ZDOTDIR-} ]] || ZDOTDIR=$OI_TUI_ZDOTDIR; unset OI_TUI_ZDOTDIR",
            "unsetopt zle prompt_sp prompt_cr bang_hist err_exit xtrace 2>/dev/null; setopt interactive_comments",
            prompt,
            f". {shlex.quote(str(folder / 'hooks'))}",
            f'printf "version %s\\n" "$ZSH_VERSION" >{events}',
        )
        _write(folder / "rejoin", f"exec {shlex.join(self.command(program, folder))}")
        _write(
            folder / "hooks",
            "{ oi_tui_status=$?; unset -f precmd preexec; preexec_functions=() PS1= PS2= RPS1=",
            "precmd_functions=(oi_tui_prompt); return $oi_tui_status; } 2>/dev/null",
        )

    def command(self, program: str, folder: Path) -> Sequence[str]:
        return [program, "-i"]

    def environment(self, folder: Path) -> Mapping[str, str]:
        return {"ZDOTDIR": str(folder)}


class Posix(Dialect):
    """dash, ash, ksh and other plain shells."""

    __slots__ = ()

    def write_startup(self, folder: Path, program: str, *, own_startup: bool) -> None:
        events, commands = (shlex.quote(str(folder / name)) for name in ("events", "commands"))
        own = '[ -r "${OI_TUI_ENV-}" ] && . "$OI_TUI_ENV"' if own_startup else ":"
        prompt = f'$(printf \'cwd %s\\nend %s %s\\n\' "$PWD" "$?" "$-" >{events}; read -r _ <{commands})'
        _write(
            folder / "startup",
            own,
            "unset ENV OI_TUI_ENV MAILCHECK",
            f". {shlex.quote(str(folder / 'hooks'))}",
        )
        _write(folder / "rejoin", f"exec {shlex.join(self.command(program, folder))}")
        _write(folder / "hooks", f"oi_tui_status=$?; PS1={shlex.quote(prompt)} PS2=; return $oi_tui_status")

    def command(self, program: str, folder: Path) -> Sequence[str]:
        return [program, "-i"]

    def environment(self, folder: Path) -> Mapping[str, str]:
        return {"ENV": str(folder / "startup")}


def dialect_of(program: str) -> Dialect:
    """The dialect that a shell of this name speaks."""
    match Path(program).name.removesuffix(".exe"):
        case "bash":
            return Bash("bash", traces=True)
        case "zsh":
            return Zsh("zsh")
        case other:
            return Posix(other)


def _write(path: Path, *lines: str) -> None:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    path.chmod(0o600)
