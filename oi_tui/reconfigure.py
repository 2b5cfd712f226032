"""Applying what the user chose to a session that is already there."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from oi_tui.engine.settings import Settings

if TYPE_CHECKING:
    from oi_tui.engine.session import Session
    from oi_tui.screens.welcome import Choice


async def use_model(session: Session, choice: Choice) -> None:
    """Talk to this model from the next request on. A key belongs to its endpoint and does not move to another."""
    changes: dict[str, Any] = {"model": choice.model, "api_base": choice.api_base}
    same_place = (choice.model, choice.api_base) == (session.settings.llm.model, session.settings.llm.api_base)
    if choice.api_key or not same_place:
        changes["api_key"] = choice.api_key
    await session.configure_llm(**changes)


async def use_settings(session: Session, settings: Settings) -> None:
    """Use all of these settings from the next request on."""
    names = {field.name for field in fields(settings)} - {"llm"}
    session.configure(**{name: getattr(settings, name) for name in names})
    await session.configure_llm(**{field.name: getattr(settings.llm, field.name) for field in fields(settings.llm)})
