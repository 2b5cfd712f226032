"""Which kind of model the settings ask for."""

from __future__ import annotations

from oi_tui.engine.llm.base import ChatModel
from oi_tui.engine.settings import ModelSettings

DEMO = "demo"
"""The model name that stands for the embedded, scripted demo."""


def choose_model(settings: ModelSettings) -> ChatModel:
    """The user's own function, the demo for its name, LiteLLM in its own process for all else. Starts nothing."""
    if settings.completions is not None:
        from oi_tui.engine.llm.custom import CustomModel

        return CustomModel(settings.completions)
    if settings.model == DEMO:
        from oi_tui.engine.llm.demo import DemoModel

        return DemoModel()
    from oi_tui.engine.llm.worker_model import WorkerModel

    return WorkerModel()
