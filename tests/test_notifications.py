"""Telling a user who looks elsewhere, and nobody else."""

from __future__ import annotations

from oi_tui.notifications import Notifier


def test_nothing_is_sent_to_a_user_who_is_looking() -> None:
    sent: list[str] = []
    notifier = Notifier(sent.append)
    notifier.notify("waits for you")
    notifier.focus_changed(True)
    notifier.notify("done")
    assert sent == []


def test_bell_title_and_notification_when_the_window_has_lost_the_focus() -> None:
    sent: list[str] = []
    notifier = Notifier(sent.append)
    notifier.set_title("sales report")
    notifier.focus_changed(False)
    notifier.notify("waits for you")
    assert sent == [
        "\x1b]2;sales report · oi-tui\x07",
        "\x1b]2;● waits for you · sales report · oi-tui\x07",
        "\x07\x1b]9;waits for you · sales report · oi-tui\x07",
    ]


def test_coming_back_clears_the_mark() -> None:
    sent: list[str] = []
    notifier = Notifier(sent.append)
    notifier.set_title("report")
    notifier.focus_changed(False)
    notifier.notify("done")
    sent.clear()
    notifier.focus_changed(True)
    notifier.focus_changed(True)
    assert sent == ["\x1b]2;report · oi-tui\x07"]


def test_a_title_cannot_break_out_of_its_sequence() -> None:
    sent: list[str] = []
    notifier = Notifier(sent.append)
    notifier.set_title("a\x07\x1b]52;c;evil\x07b\x9cc\n" + "long " * 100)
    notifier.focus_changed(False)
    notifier.notify("done")
    for sequence in sent:
        payload = sequence.replace("\x07\x1b]9;", "", 1).replace("\x1b]2;", "", 1).removesuffix("\x07")
        assert payload.isprintable()
        assert len(payload) <= 90
