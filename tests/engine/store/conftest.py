from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from oi_tui.engine.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "data" / "conversations")
    yield opened
    opened.close()
