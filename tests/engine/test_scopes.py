"""Scopes answer later proposals, as far as the user said and never further."""

from oi_tui.engine.approval import CodeProposal
from oi_tui.engine.scopes import ApprovalScopes, Scope

CODE = CodeProposal("a", "python", "print(1)")


def test_nothing_is_allowed_at_first() -> None:
    scopes = ApprovalScopes()
    assert not scopes and not scopes.covers(CODE) and scopes.describe() == ""


def test_this_very_code_means_every_byte_and_the_language() -> None:
    scopes = ApprovalScopes()
    scopes.allow(Scope.THIS_CODE, CODE)
    assert scopes.covers(CodeProposal("b", "python", "print(1)"))
    assert not scopes.covers(CodeProposal("b", "python", "print(1) "))
    assert not scopes.covers(CodeProposal("b", "shell", "print(1)"))
    assert scopes.describe() == "1 block without asking"


def test_a_language_does_not_allow_another() -> None:
    scopes = ApprovalScopes()
    scopes.allow(Scope.LANGUAGE, CODE)
    assert scopes.covers(CodeProposal("b", "python", "anything()"))
    assert not scopes.covers(CodeProposal("b", "shell", "ls"))


def test_everything_still_asks_for_code_that_hides_something() -> None:
    scopes = ApprovalScopes()
    scopes.allow(Scope.EVERYTHING, CODE)
    assert scopes.covers(CodeProposal("b", "shell", "ls"))
    assert not scopes.covers(CodeProposal("b", "python", "x = 'a\u202eb'"))


def test_clearing_asks_again() -> None:
    scopes = ApprovalScopes()
    scopes.allow(Scope.EVERYTHING, CODE)
    scopes.clear()
    assert not scopes.covers(CODE)
