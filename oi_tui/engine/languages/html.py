"""HTML: shown to the user, never run."""

from __future__ import annotations

from oi_tui.engine.languages.page import PageLanguage


class Html(PageLanguage):
    """A block is a page, or what goes into one's body."""

    name = "html"
    title = "HTML"
    aliases = ("htm",)
    file_extension = "html"

    def page(self, code: str) -> str:
        return code
