"""Keys in the order in which they were pressed.

Textual hands a key to the focused widget, which inserts letters at once; a key with a binding travels on from the
widget through its ancestors to the app, which then runs the action. Letters pressed after such a key overtake it: what
arrives in one piece as `a b Backspace c`, over a slow line or from a script, becomes `a b` instead of `a c`. A widget
that takes text calls `run_binding` first thing for every key.
"""

from __future__ import annotations

from textual import events
from textual.screen import Screen
from textual.widget import Widget


async def run_binding(widget: Widget, event: events.Key) -> bool:
    """Run what this key is bound to in the widget or in an ancestor below the screen, now.

    Returns whether there was such a thing; the event is then used up.
    """
    for node, bindings in widget.screen._binding_chain:
        if isinstance(node, Screen):
            break
        for binding in bindings.key_to_bindings.get(event.key, ()):
            if not binding.priority and await widget.app.run_action(binding.action, node):
                event.stop()
                event.prevent_default()
                return True
    return False
