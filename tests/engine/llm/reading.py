"""What the tests of the parsers share: languages, and answers cut into fragments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from oi_tui.engine.llm.pieces import CodeEnd, CodeStart, CodeText, Piece, Reasoning, Text

ALIASES = {
    "python": "python",
    "py": "python",
    "shell": "shell",
    "bash": "shell",
    "sh": "shell",
    "javascript": "javascript",
    "js": "javascript",
    "r": "r",
    "c++": "c++",
}


def resolve(tag: str) -> str | None:
    return ALIASES.get(tag)


def summary(pieces: Iterable[Piece]) -> list[tuple[object, ...]]:
    """What a reader of the pieces ends up with, in the order in which things began: ("text", …), ("thought", …) and
    ("code", language, code, complete, has a problem). Fails if the pieces are not well-formed."""
    out: list[list[object]] = []
    blocks: dict[str, list[object]] = {}
    for piece in pieces:
        match piece:
            case Text(text) | Reasoning(text):
                kind = "text" if isinstance(piece, Text) else "thought"
                assert text, "an empty piece"
                if out and out[-1][0] == kind:
                    out[-1][1] = f"{out[-1][1]}{text}"
                else:
                    out.append([kind, text])
            case CodeStart(key, language):
                assert key not in blocks, "a key twice"
                blocks[key] = ["code", language, "", None, None]
                out.append(blocks[key])
            case CodeText(key, text):
                assert text, "an empty piece"
                assert blocks[key][3] is None, "text behind the end"
                blocks[key][2] = f"{blocks[key][2]}{text}"
            case CodeEnd(key, complete, problem):
                assert blocks[key][3] is None, "ended twice"
                blocks[key][3:] = [complete, problem is not None]
    assert all(block[3] is not None for block in blocks.values()), "never ended"
    return [tuple(item) for item in out]


def code(language: str, text: str) -> tuple[object, ...]:
    """A whole block, as `summary` shows it."""
    return ("code", language, text, True, False)


def two_parts(text: str) -> Iterator[list[str]]:
    """Every way to cut a text in two."""
    return ([text[:cut], text[cut:]] for cut in range(len(text) + 1))


def in_steps(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def every_split(text: str, read: Callable[[list[str]], list[Piece]]) -> list[tuple[object, ...]]:
    """The one result that all ways to cut a text give: in two at every position, into small steps, not at all."""
    whole = summary(read([text]))
    for parts in [*two_parts(text), *(in_steps(text, size) for size in (1, 2, 3, 5, 8))]:
        assert summary(read(parts)) == whole, parts
    return whole
