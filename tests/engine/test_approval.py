"""What is approved is what runs."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oi_tui.engine.approval import (
    Answerer,
    ApprovedCode,
    CodeProposal,
    Decision,
    NotApproved,
    digest_of,
    edit_counts,
    edit_diff,
    no_answer,
)
from oi_tui.engine.lmc import Chunk
from oi_tui.engine.runner import Runner


class Echo:
    """A language that says what it was given."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def get(self, name: str) -> Echo | None:
        return self if name == "python" else None

    async def run(self, code: ApprovedCode, *, answer: Answerer) -> AsyncGenerator[Chunk, None]:
        self.ran.append(code.code)
        yield Chunk("computer", "console", "output", code.code, id=code.id)


async def execute(runner: Runner, approved: ApprovedCode) -> list[Chunk]:
    return [chunk async for chunk in runner.run(approved, no_answer)]


async def test_the_digest_is_the_sha256_of_what_runs() -> None:
    echo = Echo()
    runner = Runner(echo)  # type: ignore[arg-type]
    proposal = CodeProposal("1", "python", "print('é')")
    assert proposal.digest == hashlib.sha256("print('é')".encode()).hexdigest()
    approved = runner.approve(proposal, Decision.run("print('edited')"))
    assert approved.digest == digest_of("print('edited')") != proposal.digest
    await execute(runner, approved)
    assert echo.ran == ["print('edited')"]


async def test_code_that_was_swapped_after_approval_does_not_run() -> None:
    echo = Echo()
    runner = Runner(echo)  # type: ignore[arg-type]
    approved = runner.approve(CodeProposal("1", "python", "print(1)"), Decision.run())
    for forged in (
        replace(approved, code="print(2)"),
        replace(approved, code="print(2)", digest=digest_of("print(2)")),
        replace(approved, id="2"),
    ):
        with pytest.raises(NotApproved):
            await execute(runner, forged)
    assert echo.ran == []


async def test_one_approval_is_one_run() -> None:
    echo = Echo()
    runner = Runner(echo)  # type: ignore[arg-type]
    approved = runner.approve(CodeProposal("1", "python", "print(1)"), Decision.run())
    await execute(runner, approved)
    with pytest.raises(NotApproved):
        await execute(runner, approved)
    assert echo.ran == ["print(1)"]


def test_a_declined_proposal_gives_no_right_to_run() -> None:
    with pytest.raises(NotApproved):
        CodeProposal("1", "python", "print(1)").approve(Decision.decline("use pathlib"))


@given(st.text(), st.text())
def test_an_edit_is_counted_as_its_diff_shows(before: str, after: str) -> None:
    added, removed = edit_counts(before, after)
    diff = edit_diff(before, after).splitlines()
    assert (added == removed == 0) == (len(diff) <= 2)
    assert len(after.splitlines()) - len(before.splitlines()) == added - removed


def test_the_digest_takes_any_text_a_model_can_send() -> None:
    assert len(digest_of("\ud800 lone surrogate \x00")) == 64
