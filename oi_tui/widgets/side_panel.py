"""The panel at the side (^T): variables, files, images and runs of the conversation, for looking, never needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events, on
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from oi_tui.rendering.sanitise import sanitise_line
from oi_tui.widgets.component_style import component_style


@dataclass(frozen=True, slots=True)
class PanelRow:
    """One thing. `key` tells the screen which one was chosen; rows without a key are only for looking."""

    text: str
    detail: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class PanelSection:
    """Rows under a heading. `when_empty` stands there instead of rows."""

    title: str
    rows: tuple[PanelRow, ...] = ()
    when_empty: str = "none yet"


class SidePanel(OptionList):
    """Set `sections`. Posts `RowChosen` for Enter and clicks. Names and values are foreign text."""

    DEFAULT_CSS = """
    SidePanel {
        display: none;
        width: 36;
        height: 1fr;
        padding: 0 1;
        background: $background;
        scrollbar-size-vertical: 1;
        &.-open { display: block; }
        & .side-panel--heading { color: $text-quiet; text-style: bold; }
        & .side-panel--detail { color: $text-quiet; }
        & .side-panel--faint { color: $text-faint; }
        & .side-panel--name { color: $foreground; }
        &:ansi .side-panel--detail, &:ansi .side-panel--faint { text-style: dim; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "side-panel--heading",
        "side-panel--name",
        "side-panel--detail",
        "side-panel--faint",
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "back", tooltip="Back to the prompt.", id="panel.leave"),
    ]

    @dataclass
    class RowChosen(Message):
        """A row with a key was chosen."""

        side_panel: SidePanel
        key: str

        @property
        def control(self) -> SidePanel:
            return self.side_panel

    class Left(Message):
        """The user is done here: the focus belongs elsewhere."""

    sections: reactive[tuple[PanelSection, ...]] = reactive(())

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, markup=False, compact=True)
        self._keys: list[str] = []

    @property
    def is_open(self) -> bool:
        return self.has_class("-open")

    def open(self, is_open: bool) -> None:
        self.set_class(is_open, "-open")

    def watch_sections(self) -> None:
        if self.is_mounted:
            self._fill()

    def on_resize(self, event: events.Resize) -> None:
        if event.size.width:
            self._fill()

    def _fill(self) -> None:
        highlighted = self.highlighted
        options: list[Option] = []
        self._keys = []
        for section in self.sections:
            if options:
                self._add(options, Content(""))
            heading = component_style(self, "side-panel--heading")
            self._add(options, Content.assemble((section.title, heading)))
            for row in section.rows:
                self._add(options, self._row(row), row.key)
            if not section.rows:
                self._add(options, Content.assemble((section.when_empty, component_style(self, "side-panel--faint"))))
        self.set_options(options)
        if highlighted is not None and highlighted < len(options):
            self.highlighted = highlighted

    def _add(self, options: list[Option], content: Content, key: str = "") -> None:
        options.append(Option(content, disabled=not key))
        self._keys.append(key)

    def _row(self, row: PanelRow) -> Content:
        """The name at the left, what is to say about it at the right, aligned with the rows around it."""
        width = max(12, self.content_size.width - 2)
        detail = sanitise_line(row.detail, max(6, width // 2))
        name = Content(sanitise_line(row.text, max(4, width - len(detail) - 2)))
        gap = max(1, width - name.cell_length - Content(detail).cell_length)
        name = name.stylize(component_style(self, "side-panel--name"))
        return Content.assemble(name, " " * gap, (detail, component_style(self, "side-panel--detail")))

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if key := self._keys[event.option_index]:
            self.post_message(self.RowChosen(self, key))

    def action_leave(self) -> None:
        self.post_message(self.Left())


def sections_of(
    variables: Sequence[tuple[str, str, str]] = (),
    files: Sequence[tuple[str, str]] = (),
    images: Sequence[tuple[str, str, str]] = (),
    runs: Sequence[tuple[str, str, str]] = (),
) -> tuple[PanelSection, ...]:
    """The usual four sections. Variables: (name, type, value); files: (path, size); images and runs: (name, detail,
    key)."""
    return (
        PanelSection("Variables", tuple(PanelRow(name, value or kind) for name, kind, value in variables)),
        PanelSection("Images", tuple(PanelRow(*image) for image in images)),
        PanelSection("Files", tuple(PanelRow(path, size) for path, size in files), "none changed yet"),
        PanelSection("Runs", tuple(PanelRow(*run) for run in runs)),
    )
