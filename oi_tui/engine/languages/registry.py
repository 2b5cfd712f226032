"""Which languages there are, and the one live instance of each."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from oi_tui.engine.languages.base import Language
from oi_tui.engine.languages.catalogue import PYTHON, Entry, built_in_entries
from oi_tui.engine.languages.place import Place, environment_for_code
from oi_tui.engine.settings import Settings

_PACKAGE = "oi_tui.engine.languages"


@dataclass(slots=True)
class _Slot:
    """A language the registry knows: how it is made, and its instance once it was asked for."""

    name: str
    aliases: tuple[str, ...]
    file_extension: str
    lexer: str
    title: str
    make: Callable[[], Language]
    missing: Callable[[], str]
    is_offered: bool = True
    system_message: str = ""
    language: Language | None = None

    def get(self) -> Language:
        if self.language is None:
            self.language = self.make()
        return self.language


class Registry:
    """Languages by canonical name. `bash`, `sh`, `zsh` and `shell` are one language and one process.

    Making one, and asking it what there is, starts nothing and imports no runtime: a language is made when `get` is
    first called for it and started when it first runs code. Names are case-insensitive throughout.
    """

    def __init__(
        self,
        entries: Iterable[Entry] | None = None,
        *,
        place: Place | None = None,
        enabled: Sequence[str] | None = None,
    ) -> None:
        self._place = place or Place()
        self._slots: dict[str, _Slot] = {}
        for entry in built_in_entries() if entries is None else entries:
            self._slots[entry.name] = self._slot_of(entry)
        self._spare = self._slot_of(PYTHON)
        """Python for `python`, where there is no language of that name."""
        self._enabled: frozenset[str] | None = None
        self.restrict(enabled)

    # What there is ---------------------------------------------------------------------------------------------

    @property
    def names(self) -> tuple[str, ...]:
        """Canonical names of the enabled languages whose runtime is installed: what the model is offered."""
        return tuple(slot.name for slot in self._offered_slots() if not slot.missing())

    @property
    def missing(self) -> dict[str, str]:
        """Enabled languages that cannot run here: name to one line with the command that installs the runtime."""
        return {slot.name: line for slot in self._offered_slots() if (line := slot.missing())}

    def canonical(self, tag: str) -> str | None:
        """The canonical name for a name or an alias, enabled or not; None if no language has it."""
        wanted = tag.strip().lower()
        if wanted in self._slots:
            return wanted
        return next((slot.name for slot in self._slots.values() if wanted in slot.aliases), None)

    def file_extension(self, tag: str) -> str:
        """Without the dot; `txt` for what is not a language."""
        slot = self._find(tag)
        return slot.file_extension if slot else "txt"

    def lexer(self, tag: str) -> str:
        """The name under which Pygments knows the language; `text` for what is not a language."""
        slot = self._find(tag)
        return slot.lexer if slot else "text"

    def title(self, tag: str) -> str:
        """How people write the name: "JavaScript". The tag itself for what is not a language."""
        slot = self._find(tag)
        return slot.title if slot else tag

    def explain(self, tag: str) -> str:
        """Why `get` returns None for this tag, in one line; empty when it does not."""
        slot = self._find(tag)
        if slot is None:
            return f"There is no language “{tag}” here. Available: {', '.join(self.names) or 'none'}."
        if not self._is_enabled(slot):
            return f"{slot.title} is turned off (setting `languages`). Available: {', '.join(self.names) or 'none'}."
        return slot.missing()

    def system_messages(self) -> list[str]:
        """What the offered languages want to be said in the system message, in their order."""
        return [slot.system_message for slot in self._offered_slots() if slot.system_message and not slot.missing()]

    # Live languages --------------------------------------------------------------------------------------------

    def get(self, tag: str) -> Language | None:
        """The language of this name or alias, always the same object; None when `explain` has a reason."""
        slot = self._find(tag)
        if slot is None or not self._is_enabled(slot) or slot.missing():
            return None
        return slot.get()

    @property
    def python(self) -> Language:
        """The language called `python`, whether offered to the model or not."""
        return self._slots.get(PYTHON.name, self._spare).get()

    @property
    def live(self) -> tuple[Language, ...]:
        """The languages that were asked for so far."""
        slots = (*self._slots.values(), self._spare)
        return tuple(slot.language for slot in slots if slot.language is not None)

    @property
    def running(self) -> tuple[Language, ...]:
        """The languages in which code runs at this moment."""
        return tuple(language for language in self.live if language.is_running)

    async def interrupt(self) -> None:
        """Interrupt whatever runs; states are kept."""
        await _each(language.interrupt() for language in self.running)

    async def kill(self) -> None:
        """End whatever runs, with its state."""
        await _each(language.restart() for language in self.running)

    async def terminate_all(self) -> None:
        """End every language's process, with its state. Each starts anew with the next code it is given."""
        await _each(language.restart() for language in self.live)

    def background(self) -> list[tuple[int, str]]:
        """Pid and command line of what the code left running beside its languages. Blocks a few milliseconds."""
        found: list[tuple[int, str]] = []
        for language in self.live:
            if not language.is_running:
                found += getattr(language, "background", list)()
        return found

    async def aclose(self, *, keep_background: bool = False) -> None:
        """End everything the languages started. Idempotent; a registry that was closed can be used again.

        `keep_background`: leave alone what `background` lists, where the language can.
        """
        languages = self.live
        for slot in (*self._slots.values(), self._spare):
            slot.language = None
        await _each(_close(language, keep_background) for language in languages)

    # Changing it -----------------------------------------------------------------------------------------------

    def restrict(self, enabled: Sequence[str] | None) -> None:
        """Offer only these (names or aliases); None: all. Names nobody has are ignored."""
        self._enabled = None if enabled is None else frozenset(filter(None, map(self.canonical, enabled)))

    def add(self, language: Language | type[Any] | Any) -> None:
        """Add a language, in place of one of the same name: a `Language`, or a class or object of the documented form.

        The documented form is Open Interpreter's: `name`, `run(code)` (a generator of LMC dictionaries), `stop()`,
        `terminate()`, and optionally `aliases`, `file_extension`, `system_message`. A language that is replaced is
        not closed: call `terminate_all` first if it ran. Raises `LanguageError` for what cannot be a language.
        """
        from oi_tui.engine.languages.custom_language import adapt

        made = adapt(language)
        # A name or alias belongs to one language: the newcomer takes it.
        for slot in self._slots.values():
            slot.aliases = tuple(alias for alias in slot.aliases if alias != made.name and alias not in made.aliases)
        self._slots[made.name] = _Slot(
            name=made.name,
            aliases=tuple(alias.lower() for alias in made.aliases),
            file_extension=made.file_extension,
            lexer=getattr(made, "lexer", None) or made.name,
            title=getattr(made, "title", None) or made.name,
            make=lambda: made,
            missing=lambda: "",
            system_message=str(getattr(made, "system_message", "") or ""),
            language=made,
        )
        if self._enabled is not None:
            self._enabled |= {made.name}

    def use_only(self, languages: Iterable[Language | type[Any] | Any]) -> None:
        """Forget all languages and have these: what assigning `computer.languages` means."""
        self._slots.clear()
        self._enabled = None
        for language in languages:
            self.add(language)

    # ------------------------------------------------------------------------------------------------------------

    def _find(self, tag: str) -> _Slot | None:
        name = self.canonical(tag)
        return None if name is None else self._slots[name]

    def _offered_slots(self) -> Iterator[_Slot]:
        if self._enabled is None:
            return (slot for slot in self._slots.values() if slot.is_offered)
        return (slot for slot in self._slots.values() if slot.name in self._enabled)

    def _is_enabled(self, slot: _Slot) -> bool:
        return self._enabled is None or slot.name in self._enabled

    def _slot_of(self, entry: Entry) -> _Slot:
        return _Slot(
            name=entry.name,
            aliases=entry.aliases,
            file_extension=entry.file_extension,
            lexer=entry.lexer,
            title=entry.title,
            make=lambda: _load(entry, self._place),
            missing=lambda: entry.missing,
            is_offered=entry.is_offered,
        )


def _load(entry: Entry, place: Place) -> Language:
    if not isinstance(entry.load, str):
        return entry.load(place)
    module, _, name = entry.load.partition(":")
    made: Any = getattr(importlib.import_module(f"{_PACKAGE}.{module}"), name)
    if entry.name == PYTHON.name:
        return cast(Language, made(place.kernel, cwd=place.cwd, folder=place.folder, env=place.environment))
    return cast(Language, made(place=place))


async def _close(language: Language, keep_background: bool) -> None:
    if keep_background and hasattr(language, "background"):
        await cast(Any, language).aclose(keep_background=True)
    else:
        await language.aclose()


async def _each(steps: Iterable[Any]) -> None:
    """Run the steps side by side; the first error is raised after all of them ended."""
    results = await asyncio.gather(*steps, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result


def default_registry(settings: Settings, *, cwd: Path | None = None, folder: Path | None = None) -> Registry:
    """The built-in languages and every Jupyter kernel, as the settings want them, for a conversation in `cwd`."""
    from oi_tui.engine.languages.jupyter_kernels import installed_kernels, with_kernels

    place = Place(
        cwd=cwd or Path.cwd(),
        folder=folder,
        environment=environment_for_code(settings.llm.api_key, keep_keys=settings.pass_keys),
        kernel=settings.kernel,
        shell=settings.shell,
        time_limit=settings.time_limit,
        idle_limit=settings.idle_limit,
    )
    entries = with_kernels(built_in_entries(), installed_kernels(), settings.languages)
    return Registry(entries, place=place, enabled=settings.languages)
