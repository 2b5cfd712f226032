"""The first run at a line prompt: what was found, by number, and a model of the user's own."""

from __future__ import annotations

import asyncio

from oi_tui.engine.errors import SettingsError
from oi_tui.engine.llm.choose import DEMO
from oi_tui.engine.llm.local import Found, FoundKind, find_all
from oi_tui.engine.profile_saving import save_default
from oi_tui.engine.secrets import slot_for, store_key
from oi_tui.engine.settings import Settings
from oi_tui.engine.settings_sources import with_values
from oi_tui.plain_terminal import Terminal

ORIGIN = "your choice just now"
OWN = "Another model: type its name"
DEMO_CHOICE = "The embedded demo (scripted, no AI, no key)"


def choose_model(settings: Settings, terminal: Terminal) -> Settings | None:
    """The settings with the model that the user chose; None if they chose none. The choice is saved, a demo is not."""
    print("No model is chosen yet. Looking for keys in the environment and for servers on this machine…")
    found = asyncio.run(find_all())
    if settings.offline:
        found = [one for one in found if one.kind is not FoundKind.ENVIRONMENT]
    titles = [f"{one.title} (key in {one.env_var})" if one.env_var else one.title for one in found]
    if not found:
        print("Nothing was found.")
    choice = terminal.choose("Which one", [*titles, OWN, DEMO_CHOICE])
    if choice is None:
        return None
    if choice < len(found):
        return _use_found(settings, found[choice])
    if choice == len(found):
        return _ask_own(settings, terminal)
    return with_values(settings, {"llm.model": DEMO}, ORIGIN)


def _use_found(settings: Settings, found: Found) -> Settings:
    _save(found.settings)
    return with_values(settings, found.settings, ORIGIN)


def _ask_own(settings: Settings, terminal: Terminal) -> Settings | None:
    """A model, its endpoint and its key. The key goes to the keyring or the private file, never into the profile."""
    try:
        model = terminal.ask("Its name, as LiteLLM writes it (openai/gpt-5.4, ollama/qwen3, …): ").strip()
        if not model:
            return None
        api_base = terminal.ask("Address of its endpoint (Enter for the provider's own): ").strip() or None
        key = terminal.ask("Key (not shown; Enter if none is needed): ", hidden=True).strip()
    except EOFError:
        return None
    chosen: dict[str, str | None] = {"llm.model": model, "llm.api_base": api_base}
    _save(chosen)
    if key:
        try:
            print(f"The key is kept in {store_key(slot_for(model, api_base), key)}.")
        except SettingsError as error:
            print(f"{error} It is used for this session only.")
        chosen["llm.api_key"] = key
    return with_values(settings, chosen, ORIGIN)


def _save(chosen: dict[str, str | None]) -> None:
    try:
        print(f"Saved in {save_default(chosen)}; next time it is used at once.")
    except SettingsError as error:
        print(f"The choice could not be saved, it holds for this session: {error}")
