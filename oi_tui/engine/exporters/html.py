"""A conversation as one HTML page: nothing is fetched, nothing in it runs."""

from __future__ import annotations

import time
from html import escape

from oi_tui.engine.exporters.base import Block, Conversation, Said, parts_of, picture_type

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; frame-src 'self'"

_STYLE = """
:root { color-scheme: light dark; --quiet: #6b7280; --rail: #d1d5db; --code: #f3f4f6; --error: #b42318; }
@media (prefers-color-scheme: dark) {
  :root { --quiet: #9ca3af; --rail: #374151; --code: #1f2430; --error: #f97066; }
}
body { font: 16px/1.55 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } .about, .remark { color: var(--quiet); font-size: .85rem; }
.user { border-left: 3px solid var(--rail); padding-left: .8rem; margin: 1.5rem 0; font-weight: 600;
        white-space: pre-wrap; }
.error { color: var(--error); }
pre { background: var(--code); padding: .7rem .9rem; overflow-x: auto; border-radius: 6px; font-size: .85rem;
      line-height: 1.4; }
pre.output { background: none; border: 1px solid var(--rail); }
.block { margin: 1rem 0; } .block > * { margin: .3rem 0; } img { max-width: 100%; }
table { border-collapse: collapse; } th, td { border: 1px solid var(--rail); padding: .2rem .6rem; }
iframe { width: 100%; border: 1px solid var(--rail); border-radius: 6px; background: #fff; min-height: 12rem; }
"""


def render(conversation: Conversation) -> str:
    """A self-contained page. Foreign HTML is in frames without rights."""
    about = [time.strftime("%Y-%m-%d %H:%M", time.localtime(conversation.created))] if conversation.created else []
    about += [conversation.model] if conversation.model else []
    body = "\n".join(
        _said(part) if isinstance(part, Said) else _block(part) for part in parts_of(conversation.messages)
    )
    title = escape(" ".join(conversation.title.split()))
    return (
        (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<meta name="referrer" content="no-referrer">'
            f"\n<title>{title}</title>\n<style>{_STYLE}{_code_style()}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
            f'<p class="about">{escape(" · ".join(about))}</p>\n{body}\n</body>\n</html>\n'
        )
        .encode("utf-8", "backslashreplace")
        .decode()
    )


def _said(part: Said) -> str:
    message = part.message
    if (kind := picture_type(message)) is not None:
        return f'<p><img alt="picture" src="data:{kind};base64,{escape(message.text)}"></p>'
    if message.role == "server":
        return f'<p class="error">{escape(message.text)}</p>'
    if message.role == "user" or message.type != "message":
        return f'<div class="user">{escape(message.text)}</div>'
    return f'<div class="assistant">{_markdown(message.text)}</div>'


def _block(block: Block) -> str:
    parts = []
    if block.code.text:
        about = " · ".join(part for part in (block.language, block.remark) if part)
        parts += [f'<div class="remark">{escape(about)}</div>', _code(block.code.text, block.language)]
    if text := block.text.strip("\n"):
        parts.append(f'<pre class="output">{escape(text)}</pre>')
    for output in block.outputs:
        if (kind := picture_type(output)) is not None:
            parts.append(f'<img alt="picture" src="data:{kind};base64,{escape(output.text)}">')
        elif output.type == "image":
            parts.append(f'<p class="remark">{escape(output.text)}</p>')
        elif output.type == "code" and output.format != "javascript":
            parts.append(f'<iframe sandbox="" srcdoc="{escape(output.text)}"></iframe>')
    return f'<div class="block">{"".join(parts)}</div>'


def _markdown(text: str) -> str:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    return str(parser.render(text))


def _code(code: str, language: str) -> str:
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import TextLexer, get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        lexer = get_lexer_by_name("bash" if language == "shell" else language)
    except ClassNotFound:
        lexer = TextLexer()
    return str(highlight(code, lexer, HtmlFormatter(nowrap=False)))


def _code_style() -> str:
    from pygments.formatters import HtmlFormatter

    light, dark = (
        HtmlFormatter(style=style, nobackground=True).get_style_defs(".highlight")  # type: ignore[no-untyped-call]
        for style in ("default", "github-dark")
    )
    return f"\n{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"
