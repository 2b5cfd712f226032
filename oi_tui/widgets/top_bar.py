"""The first row: what conversation this is, and on what it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from oi_tui.rendering.sanitise import sanitise_line
from oi_tui.widgets.component_style import component_style
from oi_tui.widgets.status_bar import KernelState, Mode, Status

_LONGEST = 28
_BETWEEN = " · "
_BUSY = frozenset({KernelState.STARTING, KernelState.RUNNING, KernelState.WAITING})


class TopBar(Widget):
    """ "OI  sales report          ask · gpt-5 · py3.12 idle".

    Set `heading` (the conversation's title, foreign text is welcome) and `status`. In a narrow terminal the title is
    cut first.
    """

    DEFAULT_CSS = """
    TopBar {
        dock: top;
        height: 1;
        padding: 0 1;
        color: $text-quiet;
        & .top-bar--brand { color: $accent; text-style: bold; }
        & .top-bar--heading { color: $foreground; }
        & .top-bar--quiet { color: $text-quiet; }
        & .top-bar--busy { color: $state-running; }
        & .top-bar--danger { color: $danger; text-style: bold reverse; }
        &:ansi .top-bar--quiet { text-style: dim; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "top-bar--brand",
        "top-bar--heading",
        "top-bar--quiet",
        "top-bar--busy",
        "top-bar--danger",
    }
    ALLOW_SELECT = False

    @dataclass
    class PartClicked(Message):
        """ "mode", "model" or "kernel" was clicked."""

        top_bar: TopBar
        part: str

        @property
        def control(self) -> TopBar:
            return self.top_bar

    heading: reactive[str] = reactive("")
    status: reactive[Status] = reactive(Status())

    def render(self) -> Content:
        between = Content.assemble((_BETWEEN, component_style(self, "top-bar--quiet")))
        right = between.join(content for _, content in self._parts())
        room = max(0, self.content_size.width - right.cell_length - 2)
        left = self._left().truncate(room, ellipsis=True)
        gap = max(1, self.content_size.width - left.cell_length - right.cell_length)
        return Content.assemble(left, " " * gap, right)

    def _left(self) -> Content:
        brand, heading = component_style(self, "top-bar--brand"), component_style(self, "top-bar--heading")
        return Content.assemble(("OI", brand), "  ", (sanitise_line(self.heading, 200), heading))

    def _parts(self) -> list[tuple[str, Content]]:
        """What stands at the right: (name of the part, how it is shown)."""
        status, quiet = self.status, component_style(self, "top-bar--quiet")
        if status.mode is Mode.RUN_ALL:
            mode = Content.assemble((f" {status.mode} ", component_style(self, "top-bar--danger")))
        else:
            mode = Content.assemble((str(status.mode), quiet))
        parts = [("mode", mode), ("model", Content.assemble((sanitise_line(status.short_model, _LONGEST), quiet)))]
        if status.kernel:
            state = component_style(self, "top-bar--busy") if status.kernel_state in _BUSY else quiet
            kernel = sanitise_line(status.kernel, _LONGEST)
            parts.append(("kernel", Content.assemble((f"{kernel} ", quiet), (str(status.kernel_state), state))))
        return parts

    def on_click(self, event: events.Click) -> None:
        event.stop()
        end = self.size.width - self.styles.padding.right
        for part, content in reversed(self._parts()):
            if end - content.cell_length <= event.x < end:
                self.post_message(self.PartClicked(self, part))
                return
            end -= content.cell_length + len(_BETWEEN)
