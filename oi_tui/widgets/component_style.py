"""Component styles for widgets that draw `Content` themselves."""

from __future__ import annotations

from textual.style import Style
from textual.widget import Widget


def component_style(widget: Widget, name: str) -> Style:
    """The style of a component class alone, to lay over the widget's own.

    Unlike `Widget.get_visual_style(partial=True)` of Textual 8.2 it keeps the background and `reverse`.
    """
    return Style.from_styles(widget.get_component_styles(name))
