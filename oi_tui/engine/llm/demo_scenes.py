"""What the demo can do: a handful of requests, each with real code and an answer read from what the code printed.

A scene is a function from a `Situation` to the next `Say`. It decides from what has happened so far, as a model would,
and so also has an answer for code that failed, was edited, or was stopped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from oi_tui.engine.llm.demo_arithmetic import expression_in
from oi_tui.engine.settings import LOOP_BREAKERS

TASK_DONE = LOOP_BREAKERS[0]
LABEL = "demo: scripted, no AI"

ABILITIES = (
    ("what is 2380*3875?", "any arithmetic, worked out by code"),
    ("which are the biggest files here?", "looks through this folder"),
    ("draw a picture", "drawn with Pillow, shown as an image"),
    ("ask me something", "code that waits for your answer"),
    ("ask me for a password", "the same with a masked answer"),
    ("make an error and repair it", "code that fails, and its repair"),
    ("run a long loop", "time to watch it, and to interrupt it"),
)


@dataclass(frozen=True, slots=True)
class Run:
    """A piece of code that the demo wrote for this request, and what became of it."""

    code: str
    output: str = ""
    edited: bool = False
    interrupted: bool = False
    declined: bool = False
    refused: bool = False
    """It did not run, for a reason that `output` gives."""

    @property
    def error(self) -> str | None:
        """The last line of a traceback in the output, such as `ValueError: …`."""
        found = re.findall(r"^(?:\w+\.)*\w*(?:Error|Exception|Interrupt)\b.*", self.output, re.MULTILINE)
        return found[-1].strip() if found and ("Traceback" in self.output or "^" in self.output) else None

    @property
    def lines(self) -> list[str]:
        return [line for line in self.output.splitlines() if line.strip()]


@dataclass(frozen=True, slots=True)
class Situation:
    """What the user asked for, what has run for it, and how the request before it ended."""

    request: str
    runs: Sequence[Run] = ()
    before: Run | None = None
    is_first: bool = True


@dataclass(frozen=True, slots=True)
class Say:
    """The demo's next answer: words, and code to run if there is any."""

    text: str
    code: str | None = None
    language: str = field(default="python")


def next_step(situation: Situation) -> Say:
    """What the demo says now."""
    if TASK_DONE in situation.request:  # loop mode asks whether there is more to do
        return Say(TASK_DONE)
    scene = _scene_for(situation.request)
    if situation.runs:
        last = situation.runs[-1]
        if last.interrupted:
            return Say(_stopped(last))
        if last.refused:
            return Say(f"My code did not run, so I have no answer. The reason: {last.output.strip()}")
        said = (scene or _report)(situation)
        if last.edited:
            said = Say(f"You edited the code before it ran, so this comes from your version. {said.text}", said.code)
        return said
    opening = _opening(situation, known=scene is not None)
    said = (scene or _explain)(situation)
    return Say(opening + said.text, said.code, said.language)


def _opening(situation: Situation, *, known: bool) -> str:
    label = f"({LABEL}) " if situation.is_first and known else ""
    before = situation.before
    if before is None:
        return label
    if before.declined:
        return f"{label}You declined the code, so it did not run. "
    if before.interrupted and not known:
        return f"{label}{_stopped(before)} "
    return label


def _stopped(run: Run) -> str:
    far = f" The last thing it printed was: {run.lines[-1].strip()}." if run.lines and run.error is None else ""
    shown = [line for line in run.lines if "step" in line and "of" in line]
    if shown:
        far = f" It had come to: {shown[-1].strip()}."
    return f"You stopped the code.{far} The kernel is still there, and so are its variables."


def _scene_for(request: str) -> Callable[[Situation], Say] | None:
    if expression_in(request) is not None:
        return _arithmetic
    for pattern, scene in _SCENES:
        if re.search(pattern, request, re.IGNORECASE):
            return scene
    return None


def _explain(situation: Situation) -> Say:
    lines = [f"  - {request} ({what})" for request, what in ABILITIES]
    return Say(
        f"I am a script, not a language model ({LABEL}), so I cannot help with that. I can show how oi-tui works, "
        "with real code in a real kernel. Ask me one of these:\n\n"
        + "\n".join(lines)
        + "\n\nFor everything else choose a model: start oi-tui with --model, or take one that the welcome offers."
    )


def _report(situation: Situation) -> Say:
    """An answer to code whose request is no scene of this demo, for instance in a conversation that was loaded."""
    last = situation.runs[-1]
    if last.error:
        return Say(f"The code failed with: {last.error}")
    return Say(f"The code printed: {last.lines[-1].strip()}" if last.lines else "The code ran and printed nothing.")


def _failed(run: Run) -> Say | None:
    return Say(f"That did not work: {run.error}. I am a script and have no other way to try it.") if run.error else None


# -- arithmetic -------------------------------------------------------------------------------------------------------


def _arithmetic(situation: Situation) -> Say:
    expression = expression_in(situation.request) or ""
    if not situation.runs:
        return Say("I will let Python work that out.", f"result = {expression}\nprint(result)")
    last = situation.runs[-1]
    if (failed := _failed(last)) is not None:
        return failed
    if not last.lines:
        return Say("The code ran but printed no result, so I have none to tell you.")
    if last.edited:
        return Say(f"It printed {last.lines[-1].strip()}")
    return Say(f"{expression} = {last.lines[-1].strip()}")


# -- the biggest files ------------------------------------------------------------------------------------------------

_BIGGEST = """\
import os

sizes = []
for folder, folders, names in os.walk("."):
    folders[:] = [name for name in folders if not name.startswith(".")]
    for name in names:
        path = os.path.join(folder, name)
        if not os.path.islink(path):
            sizes.append((os.path.getsize(path), path))

sizes.sort(reverse=True)
print(f"{len(sizes)} files in {os.getcwd()}")
for size, path in sizes[:10]:
    print(f"{size / 1_000_000:10.2f} MB  {path}")
"""


def _biggest(situation: Situation) -> Say:
    if not situation.runs:
        return Say("I will look through this folder and everything below it; nothing is changed.", _BIGGEST)
    last = situation.runs[-1]
    if (failed := _failed(last)) is not None:
        return failed
    found = re.search(r"^\s*([\d.]+ MB)\s+(.+)$", last.output, re.MULTILINE)
    if found is None:
        return Say("There is no file here that I could list.")
    return Say(f"The biggest file here is {found.group(2).strip()} with {found.group(1)}. The list is above.")


# -- a picture --------------------------------------------------------------------------------------------------------

_PICTURE = """\
import math
from PIL import Image, ImageDraw

size = 480
image = Image.new("RGB", (size, size), "#10141c")
draw = ImageDraw.Draw(image)
golden = math.pi * (3 - math.sqrt(5))

for n in range(900):
    angle, distance = n * golden, 7.6 * math.sqrt(n)
    x = size / 2 + distance * math.cos(angle)
    y = size / 2 + distance * math.sin(angle)
    r = 1.5 + 4 * (n / 900)
    colour = f"hsl({(n / 900 * 300 + 20) % 360:.0f}, 75%, 60%)"
    draw.ellipse((x - r, y - r, x + r, y + r), fill=colour)

image
"""


def _picture(situation: Situation) -> Say:
    if not situation.runs:
        return Say("I will draw the seeds of a sunflower: each one a golden angle further than the last.", _PICTURE)
    last = situation.runs[-1]
    if last.error and "PIL" in last.error:
        return Say(
            f"That did not work: {last.error}. The Python that runs the code has no Pillow; "
            "install it there, or choose another Python with --kernel."
        )
    return _failed(last) or Say(
        "There it is: 900 seeds. I am a script and cannot see it, but you can. Change the numbers and run it again."
    )


# -- questions --------------------------------------------------------------------------------------------------------

_QUESTION = """\
name = input("What is your name? ")
year = input("In which year were you born? ")
letters = sum(character.isalpha() for character in name)
print(f"{name} has {letters} letters, and {year} is {'even' if int(year) % 2 == 0 else 'odd'}.")
"""

_PASSWORD = """\
from getpass import getpass

secret = getpass("A password (not your real one): ")
kinds = {
    "small letters": any(c.islower() for c in secret),
    "capitals": any(c.isupper() for c in secret),
    "digits": any(c.isdigit() for c in secret),
    "other signs": any(not c.isalnum() for c in secret),
}
print(f"{len(secret)} characters:", ", ".join(kind for kind, found in kinds.items() if found) or "none")
"""


def _question(situation: Situation) -> Say:
    if not situation.runs:
        return Say("The code will ask you two things while it runs. Answer where it asks.", _QUESTION)
    last = situation.runs[-1]
    if last.error and last.error.startswith("ValueError"):
        return Say(f"That was not a year: {last.error}. Ask me again to have another go.")
    return _failed(last) or Say(f"The code got your answers: {last.lines[-1].strip() if last.lines else 'nothing'}")


def _password(situation: Situation) -> Say:
    if not situation.runs:
        return Say("The code will ask for a password. What you type is masked, not stored, and not sent.", _PASSWORD)
    last = situation.runs[-1]
    said = last.lines[-1].strip() if last.lines else "nothing"
    return _failed(last) or Say(f"I never saw it; I only know what the code printed: {said}")


# -- an error and its repair ------------------------------------------------------------------------------------------

_BROKEN = """\
readings = ["12.5", "13.1", "n/a", "12.9", "13.4"]

total = 0.0
for reading in readings:
    total += float(reading)

print(f"mean of {len(readings)} readings: {total / len(readings):.2f}")
"""

_REPAIRED = """\
numbers = []
for reading in readings:
    try:
        numbers.append(float(reading))
    except ValueError:
        print("left out:", reading)

print(f"mean of {len(numbers)} readings: {sum(numbers) / len(numbers):.2f}")
"""


def _error(situation: Situation) -> Say:
    if not situation.runs:
        return Say("Here is a mean of five readings. One of them is not a number, so this will fail.", _BROKEN)
    last = situation.runs[-1]
    if len(situation.runs) == 1:
        if last.error is None:
            return Say(f"No error this time: {last.lines[-1].strip() if last.lines else 'nothing was printed'}")
        return Say(
            f"It failed: {last.error}. The readings are still in memory, so I leave out what is no number.", _REPAIRED
        )
    return _failed(last) or Say(f"Repaired: {last.lines[-1].strip() if last.lines else 'it ran'}.")


# -- a long loop ------------------------------------------------------------------------------------------------------

_LOOP = """\
import random
import time

inside = points = 0
for step in range(1, 41):
    for _ in range(20_000):
        inside += random.random() ** 2 + random.random() ** 2 < 1
        points += 1
    print(f"step {step:2} of 40: pi is about {4 * inside / points:.5f}", flush=True)
    time.sleep(0.5)
"""


def _loop(situation: Situation) -> Say:
    if not situation.runs:
        return Say(
            "I will throw darts at a circle until pi shows, for some 20 seconds. "
            "Watch the lines go by, and stop it if you like.",
            _LOOP,
        )
    last = situation.runs[-1]
    found = re.findall(r"pi is about ([\d.]+)", last.output)
    if last.interrupted or (last.error or "").startswith("KeyboardInterrupt"):
        return Say(_stopped(last))
    return _failed(last) or Say(f"After all steps pi is about {found[-1]}." if found else "It is done.")


_SCENES: tuple[tuple[str, Callable[[Situation], Say]], ...] = (
    (r"password|getpass|secret", _password),
    (
        r"\b(biggest|largest|big|large)\b.*\b(files?|things?)\b|\bfiles?\b.*\b(biggest|largest|big|large|space)\b",
        _biggest,
    ),
    (r"\b(draw|paint|picture|drawing|image|plot|chart|figure|sunflower)\b", _picture),
    (r"\b(error|bug|fail|fails|repair|broken|exception|traceback)\b", _error),
    (r"\b(loop|long|slow|interrupt|watch|progress|pi)\b", _loop),
    (r"\bask me\b|\bask (something|a question)\b|\bquestion\b|\binput\b|\bmy name\b", _question),
)
