"""When Python looks for unreachable cycles: not while a user waits.

A full collection walks over every object. With all that a screen is made of that takes 20 to 60 ms, a few times in
every turn by Python's own rule, in the middle of drawing a frame or echoing a key. What is built at the start lives as
long as the program: it is set aside and never looked at again. The rest is collected in quiet moments, and by Python
when a long turn makes much of it.
"""

from __future__ import annotations

import gc

_THRESHOLDS = (5_000, 10, 10)
"""New objects before the youngest are looked at, rounds of that before the next, and before all."""
_WHILE_BUILDING = (10_000, 10, 1_000)


def hold_back() -> None:
    """While the program is built, little is garbage, and only young: looking at the rest would be for nothing. Not
    looking at all would cost 1.5 MB."""
    gc.set_threshold(*_WHILE_BUILDING)


def set_aside() -> None:
    """What there is now stays. From here on, collect. Does nothing unless it was held back."""
    if gc.get_threshold() != _WHILE_BUILDING:
        return
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)


def collect() -> None:
    """For a moment in which nothing else is to be done."""
    if gc.get_freeze_count():
        gc.collect()
