"""Keys: in a real keyring if there is one, else in a private file; bound to the endpoint they are for."""

from __future__ import annotations

import json
import stat
import sys
import threading
import types
from pathlib import Path

import pytest

from oi_tui.engine import secrets
from oi_tui.engine.errors import SettingsError
from oi_tui.engine.secrets import forget_key, load_key, slot_for, store_key, with_stored_key
from oi_tui.engine.settings import ModelSettings, Settings


class FakeBackend:
    """A keyring backend; the tests say how good it is."""

    priority: float = 5

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, name: str) -> str | None:
        return self.kept.get((service, name))

    def set_password(self, service: str, name: str, key: str) -> None:
        self.kept[service, name] = key

    def delete_password(self, service: str, name: str) -> None:
        del self.kept[service, name]


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> FakeBackend:
    fake = FakeBackend()
    module = types.ModuleType("keyring")
    module.get_keyring = lambda: fake  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "keyring", module)
    return fake


def key_file(home: Path) -> Path:
    (path,) = home.rglob("keys.json")
    return path


def test_without_a_real_keyring_the_key_is_in_a_file_only_its_owner_can_read(empty_machine: Path) -> None:
    place = store_key("openai", "sk-secret")
    path = key_file(empty_machine)
    assert str(path) in place
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load_key("openai") == "sk-secret"
    assert load_key("anthropic") is None
    assert forget_key("openai") is True
    assert load_key("openai") is None
    assert forget_key("openai") is False
    assert "sk-secret" not in path.read_text()


def test_with_a_keyring_the_file_holds_no_key(backend: FakeBackend, empty_machine: Path) -> None:
    assert "keyring" in store_key("openai", "sk-secret")
    assert "sk-secret" not in key_file(empty_machine).read_text()
    assert load_key("openai") == "sk-secret"
    forget_key("openai")
    assert backend.kept == {}


def test_a_plain_text_keyring_is_none(backend: FakeBackend, empty_machine: Path) -> None:
    backend.priority = 0.5
    store_key("openai", "sk-secret")
    assert backend.kept == {}
    assert load_key("openai") == "sk-secret"


def test_a_keyring_that_fails_or_hangs_falls_back_to_the_file(
    backend: FakeBackend, monkeypatch: pytest.MonkeyPatch, empty_machine: Path
) -> None:
    def fail(*_: str) -> None:
        raise RuntimeError("no bus")

    backend.set_password = fail  # type: ignore[method-assign, assignment]
    store_key("a", "1")
    release = threading.Event()
    backend.set_password = lambda *_: release.wait()  # type: ignore[method-assign, assignment, return-value]
    monkeypatch.setattr(secrets, "KEYRING_PATIENCE", 0.05)
    store_key("b", "2")
    release.set()
    assert (load_key("a"), load_key("b")) == ("1", "2")


def test_where_nothing_was_stored_the_keyring_is_not_even_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)  # importing it would fail
    assert load_key("openai") is None


def test_a_file_that_others_can_read_is_closed_to_them(empty_machine: Path) -> None:
    store_key("openai", "sk-secret")
    key_file(empty_machine).chmod(0o644)
    load_key("openai")
    assert stat.S_IMODE(key_file(empty_machine).stat().st_mode) == 0o600


def test_a_damaged_file_is_reported_and_not_overwritten(empty_machine: Path) -> None:
    store_key("openai", "sk-secret")
    key_file(empty_machine).write_text("{")
    with pytest.raises(SettingsError, match="damaged"):
        load_key("openai")
    with pytest.raises(SettingsError, match="damaged"):
        store_key("openai", "new")
    noted = with_stored_key(Settings(llm=ModelSettings(model="openai/gpt-5.4")))
    assert "damaged" in noted.notes[0]
    assert with_stored_key(Settings(llm=ModelSettings(model="demo"))).notes == ()
    assert key_file(empty_machine).read_text() == "{"


def test_odd_entries_are_no_keys(empty_machine: Path) -> None:
    store_key("openai", "sk-secret")
    key_file(empty_machine).write_text(json.dumps({"openai": 7, "x": {"key": 8}}))
    assert load_key("openai") is None
    assert load_key("x") is None


@pytest.mark.parametrize(
    ("model", "api_base", "slot"),
    [
        ("gpt-4o", None, "openai"),
        ("claude-sonnet-5", None, "anthropic"),
        ("mistral/mistral-large", None, "mistral"),
        ("openai/x", "https://Gateway.example/v1/", "https://gateway.example"),
        ("openai/x", "http://localhost:1234/v1", "http://localhost:1234"),
        ("openai/x", "https://user:pw@host:8/v1", "https://host:8"),
        ("openai/x", "gateway.example/v1", "https://gateway.example"),
        ("openai/x", "localhost:1234/v1/chat/completions", "http://localhost:1234"),
        ("openai/x", "http://host:notaport/", "http://host:notaport"),
        (None, None, "openai"),
    ],
)
def test_a_key_belongs_to_an_endpoint(model: str | None, api_base: str | None, slot: str) -> None:
    assert slot_for(model, api_base) == slot


def test_the_stored_key_is_used_for_its_own_endpoint_only_and_a_given_one_wins() -> None:
    store_key("openai", "sk-stored")
    own = Settings(llm=ModelSettings(model="openai/gpt-5.4"))
    assert with_stored_key(own).llm.api_key == "sk-stored"
    assert "stored" in with_stored_key(own).origins["llm.api_key"]
    assert "sk-stored" not in repr(with_stored_key(own))
    elsewhere = Settings(llm=ModelSettings(model="openai/gpt-5.4", api_base="https://evil.example"))
    assert with_stored_key(elsewhere).llm.api_key is None
    given = Settings(llm=ModelSettings(model="openai/gpt-5.4", api_key="sk-given"))
    assert with_stored_key(given).llm.api_key == "sk-given"
