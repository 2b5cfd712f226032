"""Stories of the transcript: what streams in, what is replayed, what the user can do with blocks."""

from __future__ import annotations

import asyncio
import base64
import io

import pytest
from PIL import Image
from textual import events
from textual.pilot import Pilot

from oi_tui.engine.approval import CodeProposal, Decision, InputCancelled, InputRequest
from oi_tui.engine.interpreter import decided
from oi_tui.engine.lmc import Chunk, Message, notice
from oi_tui.engine.scopes import Scope
from oi_tui.widgets.code_block import CodeBlock
from oi_tui.widgets.code_editor import CodeEditor
from oi_tui.widgets.code_state import CodeState
from oi_tui.widgets.image_block import ImageBlock
from oi_tui.widgets.input_request import AnswerField
from oi_tui.widgets.run_bar import RunBar
from oi_tui.widgets.transcript import Transcript
from tests.widgets.hosts import Clock, Host, screen_text, until

CODE = "a = 1\nprint(a)"


def png(width: int = 8, height: int = 6, colour: str = "red") -> str:
    data = io.BytesIO()
    Image.new("RGB", (width, height), colour).save(data, "PNG")
    return base64.b64encode(data.getvalue()).decode()


def code_chunks(code: str = CODE, code_id: str = "c1", language: str = "python") -> list[Chunk]:
    return Message("assistant", "code", code, language, id=code_id).to_chunks()


def console(text: str, code_id: str = "c1") -> list[Chunk]:
    return [
        Chunk("computer", "console", start=True, id=code_id),
        Chunk("computer", "console", "output", text, id=code_id),
        Chunk("computer", "console", end=True, id=code_id),
    ]


class Stage:
    """A transcript, and a turn that plays on it."""

    def __init__(self) -> None:
        self.app = Host(lambda: Transcript(may_take_focus=lambda: None))
        self.reply: asyncio.Future[Decision] | None = None

    @property
    def transcript(self) -> Transcript:
        return self.app.query_one(Transcript)

    def block(self, index: int = -1) -> CodeBlock:
        block = [block for block in self.transcript.canvas.blocks if isinstance(block, CodeBlock)][index]
        return block

    def propose(self, code: str = CODE, code_id: str = "c1", language: str = "python") -> asyncio.Future[Decision]:
        self.transcript.apply(code_chunks(code, code_id, language))
        self.reply = asyncio.get_running_loop().create_future()
        self.transcript.propose(CodeProposal(code_id, language, code), self.reply)
        return self.reply

    async def go_to_bar(self, pilot: Pilot[None]) -> None:
        """Go to the code that waits, on purpose."""
        assert self.transcript.live is not None
        bar = self.transcript.live.run_bar
        await until(pilot, lambda: bar.is_mounted)
        self.transcript.live.focus()
        await until(pilot, lambda: bar.has_focus and bar.is_armed)

    async def decided(self, pilot: Pilot[None]) -> Decision:
        assert self.reply is not None
        reply = self.reply
        await until(pilot, reply.done, what="a decision")
        return reply.result()

    async def start(self, pilot: Pilot[None], code: str = CODE) -> None:
        """Propose, approve and start."""
        self.propose(code)
        await self.go_to_bar(pilot)
        await pilot.press("y")
        decision = await self.decided(pilot)
        self.transcript.apply([decided(CodeProposal("c1", "python", code), decision)])
        self.transcript.apply([Chunk("computer", "console", start=True, id="c1")])
        await pilot.pause()


async def test_a_turn_is_drawn_in_order() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(80, 40)) as pilot:
        stage.transcript.apply(Message("user", "message", "which month?").to_chunks())
        stage.transcript.apply(Message("assistant", "message", "I'll **look**.").to_chunks())
        stage.transcript.apply([*code_chunks(), *console("1\n")])
        await pilot.pause()
        text = screen_text(stage.app)
        places = [text.index(part) for part in ("You  which month?", "● I'll look.", "╭ python ─", "├ output")]
        assert places == sorted(places)


async def test_streaming_and_replay_look_the_same() -> None:
    messages = [
        Message("user", "message", "hello"),
        Message("assistant", "message", "# Title\n\nA *list*:\n\n- one\n- two"),
        Message("assistant", "code", CODE, "python", id="c1", meta={"state": "run"}),
        Message("computer", "console", "1\n2\n", "output", meta={"code_id": "c1"}),
        Message("computer", "image", png(), "base64.png", meta={"code_id": "c1"}),
        Message("assistant", "message", "Done."),
    ]
    streamed, replayed = Stage(), Stage()
    async with streamed.app.run_test(size=(80, 50)) as pilot:
        for message in messages:
            for chunk in message.to_chunks():
                for piece in chunk.text if chunk.text and chunk.type != "image" else [None]:
                    content = chunk.content if piece is None else piece
                    flags = {"start": chunk.start, "end": chunk.end}
                    streamed.transcript.apply(
                        [Chunk(chunk.role, chunk.type, chunk.format, content, id=chunk.id, **flags)]
                    )
            if message.type == "code":
                streamed.transcript.apply([decided(CodeProposal("c1", "python", CODE), Decision.run())])
        streamed.transcript.end_turn(stopped=False)
        await pilot.pause()
        first = screen_text(streamed.app)
    async with replayed.app.run_test(size=(80, 50)) as pilot:
        await pilot.pause()
        replayed.transcript.load(messages)
        await pilot.pause()
        assert screen_text(replayed.app) == first


async def test_markup_and_escapes_of_strangers_are_text() -> None:
    nasty = "[/x] [bold] \x1b]52;c;aGk=\x07 \x1b[2J \u202e [@click=app.quit]x[/]"
    stage = Stage()
    async with stage.app.run_test(size=(100, 60)) as pilot:
        transcript = stage.transcript
        for role, kind in (("user", "message"), ("assistant", "message"), ("assistant", "reasoning")):
            transcript.apply(Message(role, kind, nasty).to_chunks())  # type: ignore[arg-type]
        transcript.apply([notice("kernel", nasty), Chunk("server", "error", "x", nasty)])
        transcript.apply(code_chunks(nasty, language=nasty))
        transcript.apply(console(nasty))
        transcript.apply([Chunk("computer", "code", nasty, "<b>x</b>", id="c1")])
        transcript.expand_all()
        await pilot.pause()
        shown = screen_text(stage.app)
        assert "[/x]" in shown
        for line in shown.splitlines():
            assert not any(ord(c) < 32 or 127 <= ord(c) < 160 or c == "\u202e" for c in line), line


async def test_a_fake_run_bar_in_a_message_stands_behind_a_rail() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(80, 20)) as pilot:
        stage.transcript.apply(Message("assistant", "message", "```\n╰ y run  e edit  n no ───╯\n```").to_chunks())
        await pilot.pause()
        [line] = [line for line in screen_text(stage.app).splitlines() if "y run" in line]
        assert line.startswith((" ▏", " ●"))


async def test_y_runs_exactly_what_is_shown() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        stage.propose()
        await until(pilot, lambda: stage.app.query(RunBar))
        await stage.go_to_bar(pilot)
        await pilot.press("y")
        assert await stage.decided(pilot) == Decision.run()


async def test_editing_in_place_changes_what_runs() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        stage.propose()
        await stage.go_to_bar(pilot)
        await pilot.press("e")
        await until(pilot, lambda: isinstance(stage.app.focused, CodeEditor))
        await pilot.press("end", "0", "escape")
        await stage.go_to_bar(pilot)
        assert stage.block().state is CodeState.EDITED
        assert "a = 10" in screen_text(stage.app) and "edited by you +1 −1" in screen_text(stage.app)
        await pilot.press("y")
        assert await stage.decided(pilot) == Decision.run("a = 10\nprint(a)")


async def test_going_back_to_the_original_runs_the_original() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        stage.propose()
        await stage.go_to_bar(pilot)
        await pilot.press("e")
        await until(pilot, lambda: isinstance(stage.app.focused, CodeEditor))
        await pilot.press("x", "x", "escape")
        await stage.go_to_bar(pilot)
        await pilot.press("d")
        await until(pilot, lambda: "− a = 1" in screen_text(stage.app))
        await pilot.press("u")
        await until(pilot, lambda: stage.block().state is CodeState.WAITING)
        await pilot.press("y")
        assert await stage.decided(pilot) == Decision.run()


async def test_what_is_in_the_editor_runs_with_f5() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        stage.propose()
        await stage.go_to_bar(pilot)
        await pilot.press("e")
        await until(pilot, lambda: isinstance(stage.app.focused, CodeEditor))
        await pilot.press("#", "f5")
        assert await stage.decided(pilot) == Decision.run("#a = 1\nprint(a)")


async def test_n_declines_and_escape_asks_for_words() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        reply = stage.propose()
        await stage.go_to_bar(pilot)
        await pilot.press("escape")
        await until(pilot, lambda: stage.app.of(Transcript.InsteadRequested))
        assert not reply.done()
        stage.transcript.decline("use pandas")
        assert reply.result() == Decision.decline("use pandas")
        other = stage.propose(code_id="c2")
        await stage.go_to_bar(pilot)
        await pilot.press("n")
        await until(pilot, other.done)
        assert other.result() == Decision.decline()


async def test_choosing_a_scope_names_the_code_as_shown_and_still_waits() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        reply = stage.propose()
        await stage.go_to_bar(pilot)
        await pilot.press("a", "1")
        await until(pilot, lambda: stage.app.of(Transcript.ScopeChosen))
        [event] = stage.app.of(Transcript.ScopeChosen)
        assert event.scope is Scope.THIS_CODE and event.proposal.code == CODE
        assert not reply.done()


async def test_long_code_is_read_before_it_runs() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(80, 24)) as pilot:
        reply = stage.propose("\n".join(f"line_{n} = {n}" for n in range(100)))
        await pilot.pause()
        assert "line_0 = 0" in screen_text(stage.app), "it is shown from its beginning"
        await stage.go_to_bar(pilot)
        assert stage.transcript.live is not None
        bar = stage.transcript.live.run_bar
        presses = 0
        while not reply.done():
            await until(pilot, lambda: reply.done() or bar.is_armed)
            await pilot.press("y")
            await pilot.pause(0.1)
            presses += 1
            assert presses < 12
        assert presses >= 5 and "line_99" in screen_text(stage.app)


async def test_a_key_held_down_shows_one_page_and_runs_nothing() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(80, 24)) as pilot:
        reply = stage.propose("\n".join(f"line_{n} = {n}" for n in range(70)))
        await stage.go_to_bar(pilot)
        assert stage.transcript.live is not None
        bar, clock = stage.transcript.live.run_bar, Clock()
        clock.now, bar._clock = bar._clock() + 10, clock
        await pilot.press("y")
        await until(pilot, lambda: not bar.is_armed, what="the next page")
        place = stage.transcript.canvas.scroll_y
        clock.forward(0.66)
        for _ in range(60):
            await pilot.press("y")
            clock.forward(0.04)
        await pilot.pause(0.06)
        assert not reply.done() and stage.transcript.canvas.scroll_y == place
        clock.forward(2)
        await pilot.press("y")
        await until(pilot, lambda: stage.transcript.canvas.scroll_y > place, what="the page after that, for a new key")
        assert not reply.done()


async def test_the_keys_of_code_longer_than_the_screen_are_always_there() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(80, 24)) as pilot:
        reply = stage.propose("\n".join(f"line_{n} = {n}" for n in range(70)))

        def last_row() -> str:
            return screen_text(stage.app).splitlines()[23]

        await until(pilot, lambda: "y run" in last_row() and "48 lines more, tab to decide" in last_row())
        await stage.go_to_bar(pilot)
        await until(pilot, lambda: "48 lines more: y goes on" in last_row() and "n no" in last_row())
        assert "line_21 = 21" in screen_text(stage.app) and "line_22 = 22" not in screen_text(stage.app)
        await pilot.press("y")
        await until(pilot, lambda: "25 lines more: y goes on" in last_row())
        assert screen_text(stage.app).splitlines()[0].split("│")[1].strip().startswith("23"), "no line is left out"
        stage.transcript.canvas.follow()
        await until(pilot, lambda: "line_69 = 69" in screen_text(stage.app))
        assert "25 lines more" in last_row(), "jumping to the end is not reading"
        assert not reply.done()


async def test_code_that_the_engine_refuses_is_not_run() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(80, 24)) as pilot:
        stage.transcript.apply([*code_chunks("DISPLAY 'x'", language="cobol"), *console("There is no cobol here.\n")])
        await pilot.pause()
        assert "cobol ─ not run" in screen_text(stage.app) and "There is no cobol here." in screen_text(stage.app)
        stage.transcript.end_turn(stopped=False)
        assert stage.block().state is CodeState.NOT_RUN and stage.transcript.live is None


async def test_going_back_to_the_original_can_be_undone() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(90, 24)) as pilot:
        stage.propose()
        await stage.go_to_bar(pilot)
        assert stage.transcript.live is not None
        stage.transcript.live.text_edited("a = 2\nprint(a)")
        for key in ("u", "ctrl+z"):
            await pilot.press("u")
            await until(pilot, lambda: stage.block().code == CODE and "u my edit" in screen_text(stage.app))
            await pilot.press(key)
            await until(pilot, lambda: stage.block().code.startswith("a = 2"))
            await until(pilot, lambda: "edited by you +1 −1" in screen_text(stage.app))
        await pilot.pause(0.06)
        await pilot.press("y")
        assert (await stage.decided(pilot)).code == "a = 2\nprint(a)"


async def test_a_turn_that_is_stopped_leaves_no_widgets_and_says_so() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        stage.propose()
        await stage.go_to_bar(pilot)
        await pilot.press("e")
        await until(pilot, lambda: stage.app.query(CodeEditor))
        stage.transcript.end_turn(stopped=True)
        await pilot.pause()
        assert not stage.app.query("RunBar, CodeEditor")
        assert stage.block().state is CodeState.STOPPED and "stopped" in screen_text(stage.app)
        assert stage.app.of(Transcript.Left), "the focus goes back to the prompt"


async def test_output_streams_under_the_code_and_the_bar_stays_below() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(80, 30)) as pilot:
        await stage.start(pilot)
        for number in range(5):
            stage.transcript.apply([Chunk("computer", "console", "output", f"row {number}\n", id="c1")])
        await pilot.pause()
        lines = screen_text(stage.app).splitlines()
        assert "esc interrupt" in lines[next(i for i, line in enumerate(lines) if "row 4" in line) + 1]
        stage.transcript.apply([Chunk("computer", "console", end=True, id="c1")])
        await until(pilot, lambda: not stage.app.query(RunBar))
        assert stage.block().state is CodeState.DONE


async def test_the_line_that_runs_is_lit() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        await stage.start(pilot)
        stage.transcript.apply([Chunk("computer", "console", "active_line", 2, id="c1")])
        await pilot.pause()
        assert "2 ► print(a)" in screen_text(stage.app)
        stage.transcript.apply([Chunk("computer", "console", "active_line", None, id="c1")])
        await pilot.pause()
        assert "►" not in screen_text(stage.app)


async def test_what_the_code_clears_is_taken_back() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(80, 40)) as pilot:
        await stage.start(pilot)
        image = Chunk("computer", "image", "base64.png", png(), id="c1")
        stage.transcript.apply([Chunk("computer", "console", "output", "old\n", id="c1"), image])
        stage.transcript.apply([Chunk("computer", "console", "clear_output", True, id="c1")])
        stage.transcript.apply([Chunk("computer", "console", "output", "new\n", id="c1")])
        await pilot.pause()
        assert "old" not in screen_text(stage.app) and "new" in screen_text(stage.app)
        assert "image" not in screen_text(stage.app)


async def test_the_statement_that_led_to_the_active_line_is_marked() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        await stage.start(pilot)
        stage.transcript.apply([Chunk("computer", "console", "active_line", 1, id="c1")])
        stage.transcript.apply([Chunk("computer", "console", "active_statement", 2, id="c1")])
        await pilot.pause()
        assert "1 ► a = 1" in screen_text(stage.app) and "2 ▹ print(a)" in screen_text(stage.app)


async def test_keys_typed_ahead_after_leaving_the_editor_do_not_become_code() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        reply = stage.propose()
        await stage.go_to_bar(pilot)
        await pilot.press("e")
        await until(pilot, lambda: isinstance(stage.app.focused, CodeEditor))
        for key in ("x", "escape", "y", "y", "enter"):
            stage.app.post_message(events.Key(key, key if len(key) == 1 else None))
        await until(pilot, lambda: not stage.app.query(CodeEditor))
        await pilot.pause(0.1)
        assert stage.block().code == "x" + CODE and not reply.done()


async def test_input_is_answered_under_the_block() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        await stage.start(pilot)
        reply: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        await stage.transcript.ask(InputRequest("c1", "Name [red]? \x1b[2J"), reply)
        await pilot.pause()
        assert "input: Name [red]?" in screen_text(stage.app)
        stage.transcript.live.focus()  # type: ignore[union-attr]
        await until(pilot, lambda: "enter answer  esc interrupt" in screen_text(stage.app), what="its keys")
        await pilot.press("A", "d", "a")
        stage.transcript.live.input_field._armed_at = 0  # type: ignore[union-attr]
        await pilot.press("enter")
        await until(pilot, reply.done)
        assert reply.result() == "Ada"
        await until(pilot, lambda: not stage.app.query(AnswerField))


async def test_a_password_is_masked() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        await stage.start(pilot)
        reply: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        await stage.transcript.ask(InputRequest("c1", "Password: ", password=True), reply)
        stage.transcript.live.focus()  # type: ignore[union-attr]
        await pilot.press(*"geheim")
        await pilot.pause()
        assert "geheim" not in screen_text(stage.app) and "password: Password:" in screen_text(stage.app)


async def test_refusing_to_answer_is_an_exception_for_the_code() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        await stage.start(pilot)
        reply: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        await stage.transcript.ask(InputRequest("c1", "? "), reply)
        await stage.go_to_bar(pilot)
        await pilot.press("escape")
        await until(pilot, reply.done)
        assert isinstance(reply.exception(), InputCancelled)


async def test_two_figures_are_two_pictures_behind_their_block() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(80, 40)) as pilot:
        stage.transcript.apply([*code_chunks(code_id="c1"), *code_chunks("b = 2", code_id="c2")])
        for colour in ("red", "blue"):
            stage.transcript.apply([Chunk("computer", "image", "base64.png", png(colour=colour), id="c1")])
        await pilot.pause()
        kinds = [block.kind for block in stage.transcript.canvas.blocks]
        assert kinds == ["code", "image", "image", "code"]
        assert screen_text(stage.app).count(f"image 8×6, from block {stage.block(0).short_digest}") == 2


@pytest.mark.parametrize(
    "data", ["", "no base64!", "AAAA", base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"x" * 50).decode()]
)
async def test_a_picture_that_is_none_is_a_line(data: str) -> None:
    stage = Stage()
    async with stage.app.run_test(size=(80, 20)) as pilot:
        stage.transcript.apply([Chunk("computer", "image", "base64.png", data, id="c1")])
        await pilot.pause()
        assert data == "" or "image that cannot be read" in screen_text(stage.app)


async def test_a_huge_picture_is_named_but_not_decoded() -> None:
    block = ImageBlock(png(6000, 6000), "base64.png", "abc123")
    assert block.label == "image 6000×6000, from block abc123"
    assert block._half_blocks(80) == []


async def test_transient_notices_go_and_others_replace_their_kind() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(80, 20)) as pilot:
        apply = stage.transcript.apply
        for seconds in (3, 2, 1):
            apply([notice("retry", f"again in {seconds} s")])
        await pilot.pause()
        assert screen_text(stage.app).count("again in") == 1 and "again in 1 s" in screen_text(stage.app)
        apply([notice("trimmed", "The oldest 3 messages were left out.")])
        apply(Message("assistant", "message", "Here I am.").to_chunks())
        await pilot.pause()
        assert "again in" not in screen_text(stage.app) and "left out" in screen_text(stage.app)
        apply([notice("waiting", "no answer yet")])
        apply([notice("waiting", "")])
        await pilot.pause()
        assert "no answer yet" not in screen_text(stage.app)


async def test_incomplete_code_is_marked_by_its_notice() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(80, 20)) as pilot:
        stage.transcript.apply([*code_chunks()[:2], Chunk("server", "notice", "incomplete", "It was cut.", id="c1")])
        stage.transcript.end_turn(stopped=False)
        await pilot.pause()
        assert "python ─ incomplete" in screen_text(stage.app) and "It was cut." in screen_text(stage.app)


async def test_the_block_cursor_walks_and_its_keys_act_on_the_block() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(80, 40)) as pilot:
        stage.transcript.apply(Message("assistant", "reasoning", "secret thoughts " * 20).to_chunks())
        stage.transcript.apply([*code_chunks(), *console("1\n")])
        stage.transcript.end_turn(stopped=False)
        stage.transcript.move_cursor(-1)
        await pilot.pause()
        assert stage.transcript.cursor is stage.block()
        await pilot.press("c")
        await until(pilot, lambda: stage.app.of(Transcript.CopyRequested))
        assert stage.app.of(Transcript.CopyRequested)[0].text == CODE
        await pilot.press("r")
        await until(pilot, lambda: stage.app.of(Transcript.RunRequested))
        assert stage.app.of(Transcript.RunRequested)[0].code == CODE
        await pilot.press("enter")
        await until(pilot, lambda: stage.app.of(Transcript.InspectRequested))
        await pilot.press("[", "space")
        await until(pilot, lambda: "secret thoughts" in screen_text(stage.app))
        await pilot.press("space")
        await until(pilot, lambda: "secret thoughts" not in screen_text(stage.app))
        await pilot.press("r")
        await pilot.pause()
        assert len(stage.app.of(Transcript.RunRequested)) == 1, "there is nothing to run in a thought"


async def test_typing_in_the_transcript_goes_to_the_prompt() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        stage.transcript.apply(Message("assistant", "message", "Hello.").to_chunks())
        stage.transcript.focus()
        await pilot.press("W")
        await until(pilot, lambda: stage.app.of(Transcript.TypedElsewhere))
        assert stage.app.of(Transcript.TypedElsewhere)[0].character == "W"


async def test_finding_counts_shows_and_goes_round() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(60, 12)) as pilot:
        await pilot.pause()
        messages = [
            Message("assistant", "message", f"Answer {n}: needle here, and a **needle** there.") for n in range(20)
        ]
        stage.transcript.load(messages)
        finder = stage.transcript.finder
        await finder.search("NEEDLE")
        assert (finder.total, finder.position) == (40, 40)
        finder.move(1)
        await pilot.pause()
        assert finder.position == 1 and "Answer 0" in screen_text(stage.app)
        finder.move(-1)
        await pilot.pause()
        assert finder.position == 40 and "Answer 19" in screen_text(stage.app)
        await finder.search("nothing like this")
        assert finder.total == 0
        finder.clear()


async def test_the_hit_that_is_shown_stands_out_from_its_neighbours() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(60, 12)) as pilot:
        await pilot.pause()
        stage.transcript.load([Message("assistant", "message", "needle and needle and needle")])
        finder, canvas = stage.transcript.finder, stage.transcript.canvas
        await finder.search("needle")
        for position in (1, 2, 3):
            finder.move(1)
            assert finder.position == position
            current = canvas.theme.match_current.bgcolor
            place, marked = 0, []
            for segment in canvas.render_line(0):
                if segment.style is not None and segment.style.bgcolor == current:
                    marked.append((place, segment.text))
                place += len(segment.text)
            assert marked == [(3 + 11 * (position - 1), "needle")]


async def test_finding_opens_what_is_folded() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(60, 12)) as pilot:
        await pilot.pause()
        stage.transcript.apply(Message("assistant", "reasoning", "deep needle").to_chunks())
        await stage.transcript.finder.search("needle")
        await pilot.pause()
        assert "deep needle" in screen_text(stage.app)


async def test_clearing_in_the_middle_of_a_run_is_harmless() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        await stage.start(pilot)
        stage.transcript.clear()
        stage.transcript.apply([Chunk("computer", "console", "output", "late\n", id="c1")])
        stage.transcript.end_turn(stopped=True)
        await pilot.pause()
        assert "late" in screen_text(stage.app)
