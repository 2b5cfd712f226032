"""Keys for model endpoints: in the operating system's keyring where there is one, else in a file only its owner reads.

A key is bound to whom it is for (`slot_for`), so the key of one endpoint is never sent to another. The file also says
which keys are in the keyring: where nothing was ever stored, nothing is asked and nothing is imported.
"""

from __future__ import annotations

import dataclasses
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from oi_tui.engine.errors import SettingsError
from oi_tui.engine.llm.choose import DEMO
from oi_tui.engine.llm.targets import normalise_base
from oi_tui.engine.private_files import config_folder, read_regular, write_private
from oi_tui.engine.settings import Settings

SERVICE = "oi-tui"
MAX_BYTES = 256 * 1024
KEYRING_PATIENCE = 5.0
"""Seconds to wait for the keyring, which may ask its user to unlock it on a screen that nobody sees."""

_BARE_MODELS = {"gpt": "openai", "o1": "openai", "o3": "openai", "o4": "openai", "claude": "anthropic"}
_IN_KEYRING = "keyring"

Result = TypeVar("Result")


def slot_for(model: str | None, api_base: str | None) -> str:
    """Whom a key is for: the endpoint's scheme, host and port, or the provider that the model's name implies."""
    if base := normalise_base(api_base):
        try:
            parts = urlsplit(base)
            port = f":{parts.port}" if parts.port else ""
        except ValueError:
            return base
        return f"{parts.scheme}://{(parts.hostname or '').lower()}{port}"
    name = (model or "").lower()
    if "/" in name:
        return name.partition("/")[0]
    return _BARE_MODELS.get(name.partition("-")[0], "openai")


def load_key(slot: str) -> str | None:
    """The stored key of a slot; None if there is none or the keyring does not answer."""
    entry = _load().get(slot)
    if isinstance(entry, dict) and isinstance(key := entry.get("key"), str):
        return key
    if entry == _IN_KEYRING:
        return _with_keyring(lambda keyring: keyring.get_password(SERVICE, slot))
    return None


def store_key(slot: str, key: str) -> str:
    """Keep a key and return where it is now, for people. Raises `SettingsError` if it can be kept nowhere."""
    entries = _load()
    if _with_keyring(lambda keyring: _put(keyring, slot, key)):
        entries[slot] = _IN_KEYRING
        place = "the system's keyring"
    else:
        entries[slot] = {"key": key}
        place = f"{_store()}, which only you can read"
    _save(entries)
    return place


def forget_key(slot: str) -> bool:
    """Remove a stored key; False if there was none. Raises `SettingsError` if the file cannot be written."""
    entries = _load()
    entry = entries.pop(slot, None)
    if entry is None:
        return False
    if entry == _IN_KEYRING:
        _with_keyring(lambda keyring: keyring.delete_password(SERVICE, slot))
    _save(entries)
    return True


def with_stored_key(settings: Settings) -> Settings:
    """The settings with the stored key of their endpoint, where no other source gave one.

    May ask the keyring, and wait for it `KEYRING_PATIENCE` seconds. A damaged key file becomes a note.
    """
    if settings.llm.api_key is not None or settings.llm.model in (None, DEMO):
        return settings
    slot = slot_for(settings.llm.model, settings.llm.api_base)
    try:
        key = load_key(slot)
    except SettingsError as error:
        return dataclasses.replace(settings, notes=(*settings.notes, str(error)))
    if key is None:
        return settings
    origins = {**settings.origins, "llm.api_key": f"stored key for {slot}"}
    return dataclasses.replace(settings, llm=dataclasses.replace(settings.llm, api_key=key), origins=origins)


def _store() -> Path:
    return config_folder() / "keys.json"


def _load() -> dict[str, Any]:
    path = _store()
    try:
        data = json.loads(read_regular(path, MAX_BYTES))
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError):
        raise SettingsError(f"{path} is damaged.", "Delete it and enter the keys again.") from None
    if os.name == "posix" and path.stat().st_mode & 0o077:
        path.chmod(0o600)
    return data if isinstance(data, dict) else {}


def _save(entries: dict[str, Any]) -> None:
    try:
        write_private(_store(), json.dumps(entries, indent=1) + "\n")
    except OSError as error:
        raise SettingsError(f"The key could not be saved in {_store()}: {error.strerror}.") from None


def _put(keyring: Any, slot: str, key: str) -> bool:
    keyring.set_password(SERVICE, slot, key)
    return bool(keyring.get_password(SERVICE, slot) == key)


def _with_keyring(use: Callable[[Any], Result]) -> Result | None:
    """The result of `use` on the system's keyring; None if there is no real one, it fails, or it does not answer."""
    result: list[Result] = []

    def work() -> None:
        try:
            import keyring

            backend = keyring.get_keyring()
            if _is_real(backend):
                result.append(use(backend))
        except Exception:  # backends raise whatever their platform raises; the file is the answer to all of it
            return

    thread = threading.Thread(target=work, name="keyring", daemon=True)
    thread.start()
    thread.join(KEYRING_PATIENCE)
    return result[0] if result else None


def _is_real(backend: Any) -> bool:
    """Whether a backend keeps secrets secret: not the null, failing or plain-text ones, which rank below 1."""
    module = type(backend).__module__
    try:
        return not module.startswith(("keyring.backends.fail", "keyring.backends.null")) and backend.priority >= 1
    except Exception:  # `priority` may raise where a backend's own requirements are missing
        return False
