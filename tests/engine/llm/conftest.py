"""One worker for all tests that ask through it: loading LiteLLM takes seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from oi_tui.engine.llm.worker_model import WorkerModel


@pytest.fixture(scope="session")
def shared() -> Iterator[WorkerModel]:
    """For tests of the group `litellm`. It serves one event loop after the other, and starts again when killed."""
    model = WorkerModel()
    yield model
    asyncio.run(model.aclose())
