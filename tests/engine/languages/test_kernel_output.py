"""From what a kernel publishes to chunks: the best form of each display, at a pace that can be followed."""

from __future__ import annotations

import asyncio

import pytest

from oi_tui.engine.approval import InputRequest
from oi_tui.engine.languages import chunk_queue
from oi_tui.engine.languages.chunk_queue import ChunkQueue
from oi_tui.engine.languages.kernel_displays import Displays
from oi_tui.engine.languages.kernel_messages import Wire
from oi_tui.engine.languages.kernel_output import html_to_text, payload_text, rich_chunks, traceback_text
from oi_tui.engine.lmc import Chunk
from tests.engine.languages.running import Ran


def summary(data: dict[str, object]) -> list[tuple[str, str | None, str, str | None]]:
    return [(c.type, c.format, c.text, c.recipient) for c in rich_chunks(data, "c0de")]


def test_the_best_form_is_png_then_jpeg_then_html_then_text_then_javascript() -> None:
    everything: dict[str, object] = {
        "image/png": "aGk=\n",
        "image/jpeg": "aG8=",
        "text/html": "<b>x</b>",
        "text/plain": "x",
        "application/javascript": "x()",
    }
    assert summary(everything) == [("image", "base64.png", "aGk=", None)]
    del everything["image/png"]
    assert summary(everything) == [("image", "base64.jpeg", "aG8=", None)]
    del everything["image/jpeg"]
    assert summary(everything) == [("code", "html", "<b>x</b>", "user"), ("console", "output", "x\n", "assistant")]
    del everything["text/html"]
    assert summary(everything) == [("console", "output", "x\n", None)]
    del everything["text/plain"]
    assert summary(everything) == [("code", "javascript", "x()", "user")]


def test_text_that_says_nothing_gives_way() -> None:
    nothing = "<IPython.core.display.HTML object>"
    assert summary({"text/html": ["<p>Hello</p>", "<p>you</p>"], "text/plain": nothing})[1][2] == "Hello\nyou\n"
    assert summary({"text/latex": "$x$", "text/plain": nothing}) == [("console", "output", "$x$\n", None)]
    assert summary({"text/plain": "<Foo object at 0x7f>"}) == [("console", "output", "<Foo object at 0x7f>\n", None)]
    assert summary({"image/svg+xml": "<svg><text>t</text></svg>", "text/plain": "a drawing"}) == [
        ("code", "html", "<svg><text>t</text></svg>", "user"),
        ("console", "output", "a drawing\n", "assistant"),
    ]
    assert summary({}) == [] and summary({"text/plain": ""}) == []


def test_html_is_read_as_words() -> None:
    table = "<style>td {x}</style><table><tr><th>a</th><th>b</th></tr>\n<tr><td>1</td><td>2 &lt; 3</td></tr></table>"
    assert html_to_text(table) == "a\tb\n1\t2 < 3"
    assert html_to_text("<p>Hello <b>there</b>,\n you</p><script>no()</script>") == "Hello there, you"
    assert html_to_text("<p>cut <b>off</b").startswith("cut off")
    assert len(html_to_text("<b>x</b>" * 1_000_000)) <= 20_000


def test_errors_without_a_traceback_and_pages_are_text() -> None:
    assert traceback_text({"ename": "Oops", "evalue": "it broke"}) == "Oops: it broke\n"
    assert payload_text({"source": "page", "data": {"text/plain": "help"}}) == "help\n"
    assert payload_text({"source": "set_next_input", "text": "x = 1\n"}) == "x = 1\n"
    assert payload_text({"source": "other"}) == "" and payload_text(None) == ""


def test_messages_of_strangers_are_refused() -> None:
    ours, theirs = Wire(b"key"), Wire(b"another key")
    message_id, frames = ours.encode("execute_request", {"code": "\udc80"})
    message = ours.decode([b"identity", *frames])
    assert message.type == "execute_request" and message.content == {"code": "\udc80"} and message_id
    with pytest.raises(ValueError, match="did not sign"):
        ours.decode(theirs.encode("status", {})[1])
    for damaged in ([], frames[:3], [*frames[:-1], b"{}"]):
        with pytest.raises(ValueError):
            ours.decode(damaged)


class Source:
    """Records whether it was asked to wait."""

    def __init__(self) -> None:
        self.full = False

    def __call__(self, full: bool) -> None:
        self.full = full


async def drain(queue: ChunkQueue) -> Ran:
    ran = Ran()
    while batch := await queue.take():
        ran += [item for item in batch if isinstance(item, Chunk)]
    return ran


async def test_the_first_text_comes_at_once_and_the_rest_joined() -> None:
    queue = ChunkQueue("c0de", on_full=Source())
    queue.text("first")
    assert [c.text for c in await queue.take() if isinstance(c, Chunk)] == ["first"]
    for n in range(1000):
        queue.text(f"{n} ")
    assert len(await queue.take()) == 1


async def test_text_and_pictures_keep_their_order_and_questions_their_place() -> None:
    queue = ChunkQueue("c0de", on_full=Source())
    picture, question = Chunk("computer", "image", "base64.png", "x"), InputRequest("c0de", "?")
    queue.text("a")
    queue.text("b")
    queue.put(picture)
    queue.text("c")
    queue.put(question)
    queue.line("active_line", 1)
    queue.line("active_line", 2)
    queue.finish()
    batch = await queue.take()
    kinds = [item.content if isinstance(item, Chunk) else item for item in batch]
    assert kinds == [2, "ab", "x", "c", question]
    assert await queue.take() == []


async def test_long_text_is_cut_into_pieces_and_a_full_queue_makes_the_source_wait() -> None:
    source = Source()
    queue = ChunkQueue("c0de", on_full=source)
    text = "0123456789" * (chunk_queue.FULL // 10 + 1) + "end"
    queue.text(text)
    assert source.full
    pieces = await queue.take()
    assert not source.full
    assert all(isinstance(c, Chunk) and len(c.text) <= chunk_queue.PIECE for c in pieces)
    assert "".join(c.text for c in pieces if isinstance(c, Chunk)) == text


async def test_while_code_is_being_stopped_the_queue_takes_what_it_can_and_says_what_it_left_out() -> None:
    source = Source()
    queue = ChunkQueue("c0de", on_full=source)
    queue.overflow()
    piece = "x" * 1024 * 1024
    for _ in range(20):
        queue.text(piece)
    assert not source.full
    queue.finish()
    output = (await drain(queue)).output
    assert (
        len(output) < 10 * len(piece) and "characters that were printed until the code stopped were left out" in output
    )


async def test_waiting_for_the_pace_ends_with_the_run() -> None:
    queue = ChunkQueue("c0de", on_full=Source())
    queue.text("a")
    await queue.take()
    queue._next_output += 600
    queue.text("b")
    waiting = asyncio.create_task(queue.take())
    await asyncio.sleep(0)
    queue.finish()
    async with asyncio.timeout(60):
        assert [c.text for c in await waiting if isinstance(c, Chunk)] == ["b"]


PNG = {"image/png": "eA=="}


async def test_pictures_that_are_cleared_are_never_shown() -> None:
    queue = ChunkQueue("c0de", on_full=Source())
    displays = Displays(queue, "c0de")
    displays.show(PNG, "", False)
    for _ in range(5):
        displays.clear(wait=True)
        displays.show(PNG, "", False)
        displays.show(PNG, "", False)
    displays.finish()
    queue.finish()
    ran = await drain(queue)
    assert len(ran.images) == 3 and len(ran.contents("clear_output")) == 5


async def test_a_picture_that_stands_is_shown_while_the_code_goes_on() -> None:
    queue = ChunkQueue("c0de", on_full=Source())
    displays = Displays(queue, "c0de")
    displays.show(PNG, "plot", True)
    displays.show_what_stands()
    since, chunks = displays._held["plot"]
    displays._held["plot"] = (since - 2.0, chunks)
    displays.show_what_stands()
    assert [item.type for item in await queue.take() if isinstance(item, Chunk)] == ["image"]


async def test_clearing_at_once_and_clearing_for_the_next_output() -> None:
    queue = ChunkQueue("c0de", on_full=Source())
    displays = Displays(queue, "c0de")
    queue.text("old")
    displays.clear(wait=True)
    displays.before_output()
    queue.text("new")
    displays.clear(wait=False)
    displays.clear(wait=True)
    queue.finish()
    assert [c.content for c in await drain(queue)] == ["old", True, "new", True]
