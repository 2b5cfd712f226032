"""Programs and texts that the screen is measured with."""

from __future__ import annotations

MINIMAL = """
from textual.app import App, ComposeResult
from textual.widgets import Input

class Minimal(App):
    def compose(self) -> ComposeResult:
        yield Input(placeholder="Ask for something")

Minimal().run()
"""
"""The least with Textual that can be typed into."""

LONG_CONVERSATION = """
from oi_tui.app import OiApp, run_app
from oi_tui.engine.lmc import Message
from oi_tui.engine.settings import ModelSettings, Settings
from benchmarks.screen_programs import conversation

MESSAGES = conversation(2_000)
added = 0

def load(self):
    self.session.messages = MESSAGES
    self.chat.transcript.load(list(self.session.history))

def append(self):
    global added
    self.chat.transcript.apply(Message("assistant", "message", f"One more was added {added}.").to_chunks())
    added += 1

OiApp.action_help, OiApp.action_panel = load, append
run_app(Settings(llm=ModelSettings(model="demo")))
"""
"""The program itself, but F1 shows 2,000 messages and ^T adds one."""

MARKDOWN = """\
## A heading of the answer

Some **bold** words, `inline code` and a [link](https://host.net) in a paragraph that is long enough to be wrapped over
a few lines of the terminal, as paragraphs of answers are.

- an item with *emphasis* that goes on for a while
- another one
  1. nested and numbered

| month | amount | share |
|-------|--------|-------|
| May   | 41,883 | 12.5 % |
| June  | 39,120 | 11.7 % |

```python
def area(radius: float) -> float:
    return 3.14159 * radius ** 2  # the area of a circle
```

> And a citation at the end of it.

"""


def conversation(count: int) -> list[dict[str, object]]:
    """So many LMC messages: requests, answers with Markdown, code and its output."""
    out: list[dict[str, object]] = []
    while len(out) < count:
        number = len(out)
        out += [
            {"role": "user", "type": "message", "content": f"Please look at message {number}."},
            {"role": "assistant", "type": "message", "content": f"{MARKDOWN}That was message {number + 1}."},
            {
                "role": "assistant",
                "type": "code",
                "format": "python",
                "content": f"for i in range({number}):\n    print(i)",
            },
            {"role": "computer", "type": "console", "format": "output", "content": "1\n2\n3\n"},
            {"role": "assistant", "type": "message", "content": f"It was done: message {number + 4}."},
        ]
    return out[:count]
