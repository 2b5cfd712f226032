"""A few points of `python -m tests.engine.store.kill_test 200`."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.engine.store.kill_test import kill_once


@pytest.mark.skipif(os.name != "posix", reason="kill -9 is POSIX's")
@pytest.mark.parametrize("turn", range(4))
def test_kill_9_loses_nothing_that_was_acknowledged(tmp_path: Path, turn: int) -> None:
    assert kill_once(tmp_path / "store", random.uniform(0.0, 1.5)) == []
