"""The colours that blocks are drawn in, as Rich styles made from the design tokens of `oi_tui.styles.themes`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rich.color import Color as RichColor
from rich.style import Style
from textual.color import Color, ColorParseError

from oi_tui.rendering.theme import RenderTheme
from oi_tui.widgets.code_state import CodeState


@dataclass(frozen=True, eq=False)
class BlockTheme:
    """Styles by meaning. Compared by identity: a new theme is made when the colours change, and only then."""

    render: RenderTheme
    text: Style
    quiet: Style
    faint: Style
    accent: Style
    rail: Style
    rail_active: Style
    waiting: Style
    running: Style
    done: Style
    failed: Style
    declined: Style
    caution: Style
    added: Style
    removed: Style
    line_active: Style
    """Background of the line that runs."""
    line_failed: Style
    match: Style
    match_current: Style

    @classmethod
    def from_variables(cls, variables: Mapping[str, str], *, ansi: bool = False) -> BlockTheme:
        """From `App.theme_variables`."""

        def colour(name: str, *, dim: bool = False) -> Style:
            return Style(color=_colour(variables, name), dim=dim or None)

        def background(name: str) -> Style:
            return Style(bgcolor=_colour(variables, name))

        return cls(
            render=RenderTheme.from_variables(variables),
            text=colour("foreground"),
            quiet=colour("text-quiet", dim=ansi),
            faint=colour("text-faint", dim=ansi),
            accent=colour("accent"),
            rail=colour("rail"),
            rail_active=colour("rail-active"),
            waiting=colour("state-waiting"),
            running=colour("state-running"),
            done=colour("state-done"),
            failed=colour("state-failed"),
            declined=colour("state-declined"),
            caution=colour("caution"),
            added=colour("diff-added"),
            removed=colour("diff-removed"),
            line_active=background("line-active"),
            line_failed=Style(color=_colour(variables, "state-failed"), bold=True),
            match=background("match"),
            match_current=background("match-current"),
        )

    def of_state(self, state: CodeState) -> Style:
        """The colour of a state's name."""
        match state:
            case CodeState.WRITING | CodeState.WAITING | CodeState.EDITED:
                return self.waiting
            case CodeState.RUNNING:
                return self.running
            case CodeState.FAILED | CodeState.INCOMPLETE:
                return self.failed
            case CodeState.DONE:
                return self.done
        return self.declined


def _colour(variables: Mapping[str, str], name: str) -> RichColor | None:
    """A colour in the form Rich takes; None for what is transparent or unknown."""
    try:
        colour = Color.parse(variables.get(name, ""))
    except ColorParseError:
        return None
    return colour.rich_color if colour.a else None
