"""Every test starts on an empty machine: no home, no keys, no colour, no network but loopback."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

DEAD_PROXY = "http://127.0.0.1:9"
"""Child processes that try to leave the machine are refused here."""

_ISOLATED_PREFIXES = ("OI_TUI_", "OLLAMA_", "OPENAI_", "ANTHROPIC_", "LITELLM_", "AZURE_", "GEMINI_", "GOOGLE_")
_ISOLATED_NAMES = ("VIRTUAL_ENV", "CONDA_PREFIX", "VISUAL", "EDITOR", "PAGER", "COLORTERM", "FORCE_COLOR", "TMUX")


@pytest.fixture(autouse=True)
def empty_machine(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the test's own. Returns it."""
    for name in list(os.environ):
        if name.startswith(_ISOLATED_PREFIXES) or name.endswith("_API_KEY") or name in _ISOLATED_NAMES:
            monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    for variable, folder in {
        "XDG_CONFIG_HOME": ".config",
        "XDG_DATA_HOME": ".local/share",
        "XDG_STATE_HOME": ".local/state",
        "XDG_CACHE_HOME": ".cache",
    }.items():
        monkeypatch.setenv(variable, str(home / folder))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    for variable in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(variable, DEAD_PROXY)
    for variable in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(variable, "localhost,127.0.0.1,::1")
    return home


def _is_loopback(address: Any) -> bool:
    if not isinstance(address, tuple):
        return True  # a path: a Unix socket
    host = str(address[0])
    if host in ("localhost", ""):
        return True
    try:
        return ipaddress.ip_address(host.split("%")[0]).is_loopback
    except ValueError:
        return False


@pytest.fixture(autouse=True, scope="session")
def loopback_only() -> Iterator[None]:
    """A connection to anything but this machine fails the test that made it."""
    real_connect, real_connect_ex = socket.socket.connect, socket.socket.connect_ex

    def connect(self: socket.socket, address: Any) -> None:
        if not _is_loopback(address):
            raise AssertionError(f"a test reached for the network: {address!r}")
        real_connect(self, address)

    def connect_ex(self: socket.socket, address: Any) -> int:
        if not _is_loopback(address):
            raise AssertionError(f"a test reached for the network: {address!r}")
        return real_connect_ex(self, address)

    patch = pytest.MonkeyPatch()
    patch.setattr(socket.socket, "connect", connect)
    patch.setattr(socket.socket, "connect_ex", connect_ex)
    yield
    patch.undo()
