"""Letters and signs in code that look like ASCII ones and are not.

Three tricks are looked for. A foreign letter inside a Latin name (`pаypal` with a Cyrillic а); a name written wholly in
look-alikes that reads like a keyword, a builtin, a command or another name of the same code (`сору` for `copy`); and
a sign that reads like an operator (`if (env ǃ= "prod")`). Names that visibly belong to another script (`get_имя`, `Δx`,
`σ_max`, `данные`) raise no alarm, nor does prose in comments; in strings only the first trick counts.
"""

from __future__ import annotations

import builtins
import keyword
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

CharacterTest: TypeAlias = Callable[[str], bool]


class Region(NamedTuple):
    """A string or a comment: not code, as far as a look at its delimiters can tell."""

    start: int
    end: int
    kind: Literal["string", "comment"]


class RegionCursor:
    """Answers which region a place is in."""

    def __init__(self, regions: Sequence[Region]) -> None:
        self._regions = regions
        self._starts = [region.start for region in regions]

    def kind_at(self, offset: int) -> Literal["string", "comment", "code"]:
        index = bisect_right(self._starts, offset) - 1
        if index >= 0 and offset < self._regions[index].end:
            return self._regions[index].kind
        return "code"


def regions_of(text: str, language: str | None) -> list[Region]:
    """The strings and comments of code. Rough on purpose: a string ends with its line unless its kind may go on."""
    name = (language or "python").lower()
    if name in _PROSE:
        return [Region(0, len(text), "string")]
    return [
        Region(match.start(), match.end(), "comment" if match.lastgroup == "comment" else "string")
        for match in _DELIMITERS.get(name, _LIKE_C).finditer(text)
    ]


def find(text: str, regions: Sequence[Region]) -> Iterator[tuple[int, str]]:
    """(offset, the ASCII text it looks like) of every look-alike, in no particular order."""
    cursor = RegionCursor(regions)
    others: frozenset[str] | None = None
    for start, word in _foreign_words(text):
        kind = cursor.kind_at(start)
        if kind == "comment":
            continue
        inside = list(_inside_latin(word, is_string=kind == "string"))
        if not inside and kind == "code":
            if others is None:
                others = frozenset(_ASCII_WORD.findall(text))
            inside = list(_whole_word(word, others))
        yield from ((start + index, looks_like) for index, looks_like in inside)
    for match in _SIGNS.finditer(text):
        if cursor.kind_at(match.start()) == "code":
            yield match.start(), _SIGN_OF.get(match[0]) or chr(ord(match[0]) - 0xFEE0)


def _foreign_words(text: str) -> Iterator[tuple[int, str]]:
    """Every word that has a letter beyond ASCII. Looks back at most once at each character."""
    done = 0
    while letter := _FOREIGN_LETTER.search(text, done):
        start = letter.start()
        while start > done and (text[start - 1].isalnum() or text[start - 1] == "_"):
            start -= 1
        rest = _WORD.match(text, letter.start())
        done = rest.end() if rest else letter.end()
        yield start, text[start:done]


def _inside_latin(word: str, *, is_string: bool) -> Iterator[tuple[int, str]]:
    """Runs of look-alikes in a word that has ASCII letters as well."""
    if not is_string and not _CJK.search(word):
        for index, character in enumerate(word):
            if not character.isascii() and character not in _STRONG and (plain := _compatible(character)):
                yield index, plain
    if not _ASCII_LETTER.search(word):
        return
    for run in _FOREIGN_RUN.finditer(word):
        before = word[run.start() - 1 : run.start()]
        after = word[run.end() : run.end() + 1]
        touches_before, touches_after = bool(_ASCII_LETTER.match(before)), bool(_ASCII_LETTER.match(after))
        if all(character in _STRONG for character in run[0]):
            is_trick = touches_after if is_string else True
        elif all(character in _ALL for character in run[0]):
            is_trick = touches_before and touches_after
        else:
            continue  # it can be seen to be foreign
        if is_trick:
            yield from ((run.start() + index, _ALL[character]) for index, character in enumerate(run[0]))


def _whole_word(word: str, others: frozenset[str]) -> Iterator[tuple[int, str]]:
    """The look-alikes of a word that reads like a word of the language or like another name in the code."""
    read = "".join(
        _STRONG.get(character) or (_ALL.get(character, character) if _has_neighbour(word, index) else character)
        for index, character in enumerate(word)
    )
    if read != word and (read in _WELL_KNOWN or read in others):
        for index, character in enumerate(word):
            if read[index] != character:
                yield index, read[index]


def _has_neighbour(word: str, index: int) -> bool:
    return word[max(0, index - 1) : index].isalpha() or word[index + 1 : index + 2].isalpha()


def _compatible(character: str) -> str:
    """The ASCII letters that Python reads this letter as: fullwidth, mathematical and other styled Latin."""
    if unicodedata.category(character)[0] not in "LN" or character in "ªº" or character.isdigit():
        return ""
    plain = unicodedata.normalize("NFKC", character)
    return plain if plain.isascii() and plain.isalpha() else ""


# --- where a word begins and what it is made of ----------------------------------------------------------------------

_FOREIGN_LETTER = re.compile(r"[^\W\x00-\x7f]")
_WORD = re.compile(r"\w+")
_ASCII_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASCII_LETTER = re.compile(r"[A-Za-z]")
_FOREIGN_RUN = re.compile(r"[^\W\d_\x00-\x7f]+")

_CJK = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uff66-\uff9f\U00020000-\U0003ffff]")

_PROSE = frozenset({"text", "plaintext", "markdown", "md", "html", "htm", "xml", "json", "csv"})

_QUOTED = r"\"(?:[^\"\\\n]|\\.)*+\"?|'(?:[^'\\\n]|\\.)*+'?"
_TEMPLATE = r"`(?:[^`\\]|\\.)*+`?"
_LIKE_PYTHON = re.compile(
    r"(?P<comment>#[^\n]*)|(?P<string>\"\"\"(?:[^\"\\]|\\.|\"(?!\"\"))*+(?:\"\"\")?"
    rf"|'''(?:[^'\\]|\\.|'(?!''))*+(?:''')?|{_QUOTED})",
    re.DOTALL,
)
_LIKE_SHELL = re.compile(rf"(?P<comment>(?<![^\s;&|()])#[^\n]*)|(?P<string>{_QUOTED})", re.DOTALL)
_LIKE_C = re.compile(
    rf"(?P<comment>//[^\n]*|/\*(?:[^*]|\*(?!/))*+(?:\*/)?)|(?P<string>{_QUOTED}|{_TEMPLATE})", re.DOTALL
)
_LIKE_APPLESCRIPT = re.compile(
    rf"(?P<comment>(?:--|#)[^\n]*|\(\*(?:[^*]|\*(?!\)))*+(?:\*\))?)|(?P<string>{_QUOTED})", re.DOTALL
)
_LIKE_POWERSHELL = re.compile(rf"(?P<comment><\#(?:[^#]|\#(?!>))*+(?:\#>)?|\#[^\n]*)|(?P<string>{_QUOTED})", re.DOTALL)
_DELIMITERS = (
    dict.fromkeys(("python", "py", "python3", "ipython", "r"), _LIKE_PYTHON)
    | dict.fromkeys(("shell", "bash", "sh", "zsh", "batch", "bat", "fish", "ruby", "rb", "perl", "yaml"), _LIKE_SHELL)
    | {"applescript": _LIKE_APPLESCRIPT, "powershell": _LIKE_POWERSHELL, "ps1": _LIKE_POWERSHELL}
)

# --- what looks like what --------------------------------------------------------------------------------------------


def _pairs(table: str) -> dict[str, str]:
    return {pair[0]: pair[1] for pair in table.split()}


# After the confusables of Unicode TS #39, cut to what is close in the fonts of terminals.
_STRONG = _pairs(
    "аa еe іi ӏl ѕs јj оo рp сc уy хx һh ԁd ԛq ԝw ѵv ԍg АA ВB ЕE ЅS ІI ЈJ КK МM НH ОO РP СC ТT УY ХX ҮY ӀI ԚQ ԜW ҺH ԌG "
    "ΑA ΒB ΕE ΖZ ΗH ΙI ΚK ΜM ΝN ΟO ΡP ΤT ΥY ΧX οo ϳj ϲc ϹC "
    "օo ոn սu հh ցg զq յj ՕO ՏS ՍU ԼL "
    "ᎪA ᎡR ᎢT ᎠD ᏚS ᏟC ᎫJ ᎻH ᎷM ᏞL ᏢP ᏔW ᏃZ ᏴB ᎬE ᏙV ᏦK ᏀG "
    "ꓮA ꓐB ꓚC ꓓD ꓰE ꓝF ꓖG ꓧH ꓲI ꓙJ ꓗK ꓡL ꓟM ꓠN ꓳO ꓑP ꓣR ꓢS ꓔT ꓴU ꓦV ꓪW ꓫX ꓬY ꓜZ "
    "ⲞO ⲟo ⲤC ⲥc ⲢP ⲣp ⲎH ⲔK ⲘM ⲚN ⲦT ⲬX "
    "ɑa ɡg ɩi ʏy ᴄc ᴏo ᴜu ᴠv ᴡw ᴢz ꜱs ɪi ǀl"
)
# Near enough inside a Latin word; natural on their own, in physics and in Turkish.
_ALL = _STRONG | _pairs("αa γy ιi κk νv ρp σo τt υu ωw ηn кk гr тt вb пn ьb ıi")

_SIGN_OF = _pairs("ǃ! ǀ| \u037e; ː: ꞉: ∶: ∕/ ⁄/ ⧸/ ∖\\ ․. ‐- ‑- ‒- –- −- ∗* ⁎* ‚, ＿_")
_DASHES = "‐‑‒–−"
# A dash counts where an option begins; fullwidth signs belong to CJK text.
_SIGNS = re.compile(
    f"[{re.escape(''.join(_SIGN_OF.keys() - set(_DASHES)))}]|(?<!\\S)[{_DASHES}](?=[\\w-])"
    "|(?<![\u2e80-\u9fff\uac00-\ud7af\uff00-\uffef])[\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff5e]"
    "(?![\u2e80-\u9fff\uac00-\ud7af\uff00-\uffef])"
)

_WELL_KNOWN = frozenset(
    {*keyword.kwlist, *keyword.softkwlist, *dir(builtins)}.union(
        """
        os sys subprocess shutil pathlib socket requests urllib json re time random math pickle ctypes base64 system
        popen run call check_output remove unlink rmtree rename copy move chmod chown environ getenv path open read
        write close self cls args kwargs numpy np pandas pd matplotlib plt computer interpreter
        function var let const return typeof instanceof new delete void this null undefined console log require
        process window document fetch export import from default async await eval switch case do throw catch extends
        super echo cp mv rm cat ls cd sh bash zsh sudo su ssh scp curl wget tar zip dd kill ps find grep sed awk xargs
        tee mkdir rmdir touch ln df du apt pip git make docker python perl ruby node npm source exec exit then fi done
        esac end puts def nil unless begin rescue library TRUE FALSE NULL String System public static class
        """.split()
    )
)
