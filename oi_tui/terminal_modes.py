"""What the program says to a terminal to have the screen, and to give it back."""

from __future__ import annotations

KEEP_TITLE = "\x1b[22;0t"
ENTER = KEEP_TITLE + (
    "\x1b[?1049h"  # alternate screen
    "\x1b[?25l"  # the cursor is drawn by us
    "\x1b[?1004h"  # tell us about focus
    "\x1b[?2004h"  # a paste is one paste
    "\x1b[?7l"  # no wrapping
)
KITTY_ON = "\x1b[>25u"  # disambiguate, all keys as sequences, with their text
MOUSE_ON = "\x1b[?1000h\x1b[?1003h\x1b[?1015h\x1b[?1006h"
QUERIES = "\x1b[?2026$p\x1b[?2048$p"  # synchronised output? sizes in band?

RESTORE = (
    b"\x1b[?2026l"
    b"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1016l"
    b"\x1b[?1004l\x1b[?2004l\x1b[?2048l"
    b"\x1b[<u"  # belongs to the alternate screen: before leaving it
    b"\x1b[?7h\x1b[0m\x1b[?1049l\x1b[?25h\x1b[23;0t"
)
"""Puts every mode back that this program switches on. Harmless when written twice."""

CANCEL = b"\x18\x1b\\"
"""Ends a sequence that was cut off."""
