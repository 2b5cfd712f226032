"""What an answer costs: counted by the provider, else estimated; and the budget that is kept before the call.

The rule for `max_budget`: a request is made only if even the longest answer to it stays within the budget. So its
`max_tokens` is lowered to what the rest of the budget pays for, and if that is not worth asking (`LEAST_ANSWER`), the
request is not made. The prompt's tokens are estimated high for it. Where the price is unknown the budget cannot be
kept, which is said.
"""

from __future__ import annotations

import json
from dataclasses import replace

from oi_tui.engine.errors import BudgetExceeded
from oi_tui.engine.llm.base import Capabilities, Delta, ModelRequest, Usage

CHARACTERS_PER_TOKEN = 4
CAUTIOUS_CHARACTERS_PER_TOKEN = 3
"""For budgets: code and most languages take more tokens than English prose."""
IMAGE_TOKENS = 800
"""A picture costs about this much, however many characters its base64 has."""
LEAST_ANSWER = 256
"""Tokens. A request that can afford less is not made."""
LONGEST_ANSWER = 16_384
"""Tokens. Assumed where neither the user nor the model map says how long an answer may be."""


def estimated_prompt_tokens(request: ModelRequest, characters_per_token: int = CHARACTERS_PER_TOKEN) -> int:
    """About how many tokens the request is."""
    images = 0
    characters = len(json.dumps(list(request.tools), ensure_ascii=False)) if request.tools else 0
    for message in request.messages:
        content = message.get("content")
        parts = content if isinstance(content, list) else [content]
        for part in parts:
            if isinstance(part, dict) and part.get("type") == "image_url":
                images += 1
            elif part is not None:
                characters += len(part if isinstance(part, str) else json.dumps(part, ensure_ascii=False))
        characters += 12 + sum(len(json.dumps(call, ensure_ascii=False)) for call in message.get("tool_calls") or ())
    return characters // characters_per_token + images * IMAGE_TOKENS + 1


def estimated_usage(prompt_tokens: int, answer_characters: int, capabilities: Capabilities) -> Usage:
    """Usage for an answer whose provider did not count; marked as estimated."""
    completion = -(-answer_characters // CHARACTERS_PER_TOKEN)
    cost = None
    if capabilities.input_price is not None and capabilities.output_price is not None:
        cost = prompt_tokens * capabilities.input_price + completion * capabilities.output_price
    return Usage(prompt_tokens, completion, cost=cost, estimated=True)


def within_budget(request: ModelRequest, capabilities: Capabilities, spent: float) -> tuple[ModelRequest, Delta | None]:
    """The request as it may be made, and what to tell about it. Raises `BudgetExceeded`."""
    budget = request.settings.max_budget
    if budget is None:
        return request, None
    if spent >= budget:
        raise _exceeded(budget, spent)
    if capabilities.input_price is None or capabilities.output_price is None:
        text = f"The price of {request.settings.model} is not known: max_budget ({_money(budget)}) cannot be kept."
        return request, Delta(notice=("budget", text))
    prompt = estimated_prompt_tokens(request, CAUTIOUS_CHARACTERS_PER_TOKEN) * capabilities.input_price
    left = budget - spent - prompt
    if left >= 0 and capabilities.output_price == 0:
        return request, None
    wanted = request.settings.max_tokens or capabilities.max_output_tokens or LONGEST_ANSWER
    affordable = int(left / capabilities.output_price) if left > 0 else 0
    if affordable >= wanted:
        return request, None
    if affordable < min(LEAST_ANSWER, wanted):
        raise _exceeded(budget, spent)
    return replace(request, settings=replace(request.settings, max_tokens=affordable)), None


class Tally:
    """Counts what one attempt delivers."""

    def __init__(self, request: ModelRequest, capabilities: Capabilities) -> None:
        self.finish_reason: str | None = None
        self.has_begun = False
        """Something of the answer was shown, its thinking included."""
        self.is_empty = True
        """No text and no call so far; thinking alone is no answer."""
        self._request = request
        self._capabilities = capabilities
        self._characters = 0
        self._has_usage = False

    def note(self, delta: Delta) -> None:
        calls = sum(len(call.arguments) + len(call.name or "") for call in delta.tool_calls)
        self._characters += len(delta.text) + len(delta.reasoning) + calls
        self.is_empty = self.is_empty and not (delta.text.strip() or delta.tool_calls)
        self.has_begun = self.has_begun or not self.is_empty or bool(delta.reasoning.strip())
        self._has_usage = self._has_usage or delta.usage is not None
        self.finish_reason = delta.finish_reason or self.finish_reason

    def missing_usage(self) -> Usage | None:
        """An estimate, if the provider counted nothing."""
        if self._has_usage:
            return None
        return estimated_usage(estimated_prompt_tokens(self._request), self._characters, self._capabilities)


def _exceeded(budget: float, spent: float) -> BudgetExceeded:
    what = f"The next request could pass the budget of {_money(budget)} ({_money(spent)} spent)."
    return BudgetExceeded(what, "Raise max_budget to go on.")


def _money(dollars: float) -> str:
    return f"${dollars:.2f}" if dollars >= 0.1 or dollars == 0 else f"${dollars:.4f}"
