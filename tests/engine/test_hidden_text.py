"""Code that does not read as it runs is found; text that is merely not English is left alone."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oi_tui.engine.hidden_text import Kind, find_hidden, reveal, summary

RLO, LRI, PDI, RLI, ZWJ, ZWNJ, VS16 = "\u202e", "\u2066", "\u2069", "\u2067", "\u200d", "\u200c", "\ufe0f"

# After the samples published with "Trojan Source: Invisible Vulnerabilities" (CVE-2021-42574, CVE-2021-42694).
TRICKS = {
    "early return": (
        "python",
        f'def subtract(name, amount):\n    """Subtract funds and {RLI}""" ;return\n    bank[name] -= amount\n',
        {Kind.BIDI: 1},
    ),
    "commenting out": (
        "python",
        f'access = "user"\nif access != "none{RLO}{LRI}": # Check if admin {PDI}{LRI}":\n    print("hello")\n',
        {Kind.BIDI: 4},
    ),
    "commenting out, C": (
        "javascript",
        f"/*{RLO} }} {LRI}if (isAdmin){PDI} {LRI} begin admins only */\nconsole.log('admin');\n",
        {Kind.BIDI: 4},
    ),
    "stretched string": (
        "javascript",
        f'if (accessLevel != "user{RLO} {LRI}// Check if admin{PDI} {LRI}") {{}}\n',
        {Kind.BIDI: 4},
    ),
    "homoglyph function": ("python", "def sayHello(): ...\ndef say\u041dello(): ...\n", {Kind.LOOKALIKE: 1}),
    "homoglyph name, whole": (
        "python",
        "def copy(a): ...\ndef \u0441\u043e\u0440\u0443(a): ...\n",
        {Kind.LOOKALIKE: 4},
    ),
    "homoglyph builtin": ("python", "\u0435val(x)\n", {Kind.LOOKALIKE: 1}),
    "homoglyph command": ("shell", "\u0441\u0440 a b\n", {Kind.LOOKALIKE: 2}),
    "fullwidth name": ("python", "\uff45\uff56\uff41\uff4c('1')\n", {Kind.LOOKALIKE: 4}),
    "mathematical name": ("python", "\U0001d41e\U0001d42f\U0001d41a\U0001d425('1')\n", {Kind.LOOKALIKE: 4}),
    "Greek inside Latin": ("python", "p\u03b1yload = 1\n", {Kind.LOOKALIKE: 1}),
    "homograph address": ("shell", 'curl "https://\u0430pple.com/x" | sh\n', {Kind.LOOKALIKE: 1}),
    "sign like an operator": ("javascript", "if (environment \u01c3= 'production') {}\n", {Kind.LOOKALIKE: 1}),
    "Greek question mark": ("javascript", "let a = 1\u037e\n", {Kind.LOOKALIKE: 1}),
    "option with a long dash": ("shell", "rm \u2013rf x\n", {Kind.LOOKALIKE: 1}),
    "invisible variable": ("javascript", "const { timeout,\u3164 } = req.query;\n", {Kind.INVISIBLE: 1}),
    "zero width space in a name": ("python", "is_ad\u200bmin = True\n", {Kind.INVISIBLE: 1}),
    "joiner in a Latin name": ("python", f"is_ad{ZWJ}min{ZWNJ} = True\n", {Kind.INVISIBLE: 2}),
    "word joiner": ("python", "a\u2060b = 1\n", {Kind.INVISIBLE: 1}),
    "soft hyphen": ("python", "pass\u00adword = 1\n", {Kind.INVISIBLE: 1}),
    "byte order mark": ("python", "x = '\ufeff'\n", {Kind.INVISIBLE: 1}),
    "line separator": ("javascript", "// comment\u2028evil()\n", {Kind.INVISIBLE: 1}),
    "hidden message in tags": ("python", "# hello\U000e0068\U000e0069\n", {Kind.INVISIBLE: 2}),
    "data in variation selectors": ("python", "x = '😀\U000e0158\U000e0159\ufe01'\n", {Kind.INVISIBLE: 3}),
    "variation selector on a letter": ("python", f"a{VS16} = 1\n", {Kind.INVISIBLE: 1}),
    "chain of selectors": ("python", f"x = '❤{VS16}{VS16}{VS16}'\n", {Kind.INVISIBLE: 2}),
    "mark in a Latin name": ("python", "ad\u200emin = 1\n", {Kind.BIDI: 1}),
    "non-breaking space": ("shell", "rm -rf dir\u00a0/\n", {Kind.SPACE: 1}),
    "ideographic space": ("python", "a\u3000= 1\n", {Kind.SPACE: 1}),
    "escape sequence": ("python", "print('\x1b[8mhidden\x1b[0m')\n", {Kind.CONTROL: 2}),
    "backspaces": ("shell", "rm -rf /\x08\x08\x08\x08\n", {Kind.CONTROL: 4}),
    "carriage return": ("shell", "evil #\rls\n", {Kind.CONTROL: 1}),
    "C1 control": ("python", "x = '\x9b2J'\n", {Kind.CONTROL: 1}),
    "private use": ("python", "x\ue000 = 1\n", {Kind.PRIVATE: 1}),
    "half a character": ("python", "x = '\ud83d'\n", {Kind.CONTROL: 1}),
    "code far to the right": ("python", "x = 1" + " " * 200 + "; evil()\n", {Kind.GAP: 1}),
    "code indented out of sight": ("python", "if a:\n" + " " * 300 + "evil()\n", {Kind.GAP: 1}),
}


@pytest.mark.parametrize("trick", TRICKS, ids=lambda name: name.replace(" ", "-"))
def test_every_trick_is_found(trick: str) -> None:
    language, code, expected = TRICKS[trick]
    counts: dict[Kind, int] = {}
    for finding in find_hidden(code, language=language):
        counts[finding.kind] = counts.get(finding.kind, 0) + 1
    assert counts == expected


NATURAL = {
    "plain code": ("python", "def f(x):\n\treturn x ** 2  # squared\r\n"),
    "Hebrew": ("python", 'print("שלום עולם, 3 דקות (בערך)")  # הערה בעברית: x = 1\n'),
    "Hebrew with a mark": ("python", 'print("C++\u200f היא שפה")\nname = "דוד\u200f!"\n'),
    "Arabic": ("python", 'رسالة = "مرحبا بالعالم، كيف الحال؟"\nprint(رسالة)  # تعليق\n'),
    "Arabic with a letter mark": ("python", 'print("السعر: 5\u061c د.إ")\n'),
    "Persian": ("python", 'print("می\u200cخواهم کتاب\u200cها را")\n'),
    "Persian abbreviation": ("python", 'print("ه\u200d")\n'),
    "Hindi": ("python", 'print("क्\u200dष और क्\u200cष, नमस्ते")\n'),
    "Bengali": ("python", 'print("র\u200d্যাব")\n'),
    "Malayalam": ("python", 'print("അവന്\u200d")\n'),
    "Sinhala": ("python", 'print("ශ්\u200dරී ලංකා")\n'),
    "Chinese": ("python", '变量 = "你好，世界！"  # 注释：全角　空格\nprint(变量)\n'),
    "Chinese, unquoted": ("shell", "echo 你好，世界！（再见）\n"),
    "Japanese": ("python", 'print("東京　タワー ＡＢＣ株式会社 葛\U000e0100城")\n'),
    "Korean": ("python", '이름 = "안녕하세요"\nprint(이름)\n'),
    "Russian": ("python", 'имя = "Иван"\nget_имя = имя\nprint(f"Привет, {имя}! Это JSONа и APIшка")  # про SQLом\n'),
    "Russian, unquoted": ("shell", "echo а он о нас, с утра\nmv Отчёт.xlsx отчёты/\n"),
    "Ukrainian": ("python", 'print("їжак і ґанок")\n'),
    "Greek": ("python", 'print("Καλημέρα κόσμε")\nμήνυμα = 1\n'),
    "physics": ("python", "α, β = 0.1, 0.2\nΔx = x_1 - x_0\nσ_max = ρ * v**2 / (2 * μ)\nν, v, ρ_0, p_0 = 1, 2, 3, 4\n"),
    "micro": ("python", "µs = 1e-6\nΩ = 4.7\n"),
    "accents": ("python", 'été = "déjà vu, naïve façade, Straße, İstanbul, ısı"\n'),
    "Vietnamese, decomposed": ("python", f'tên = "{unicodedata.normalize("NFD", "Tiếng Việt rất đẹp")}"\n'),
    "emoji": ("python", 'print("👍🏽 👩‍👩‍👧‍👦 ❤️ 🏳️‍🌈 🏴‍☠️ 1️⃣ #️⃣ ☎︎ ↔️ ™️ ㊗️ 🧑🏻‍❤️‍💋‍🧑🏿")\n'),
    "flags": ("python", 'print("🇺🇦 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f 🇯🇵")\n'),
    "profession emoji": ("python", 'print("👩🏽\u200d⚕️ 🧑\u200d💻 🐕\u200d🦺 🐻\u200d❄️")\n'),
    "typography in strings": ("python", 'print("“quoted” – it’s 10–20 % … ½ ≠ ≤ → — done")\n'),
    "mathematics in strings": ("python", 'title = "∫ f(x) dx ∕ ∑ x² − 1"\n'),
    "box drawing": ("python", 'print("│ ├── █▇▆ ⠋⠙⠀⠹")\n'),
    "French comment": ("python", "# Attention\u00a0: ceci est une remarque\n"),
    "heredoc": ("shell", "cat > x.txt <<EOF\n“Smart” text — it’s fine; 10–20 items\nEOF\n"),
    "page": ("html", "<p>Цена: 5&nbsp;₽ — “ok”，你好！ μ</p>\n"),
    "old Korean": ("python", 'print("\u1100\u1161\u1160")\n'),
    "aligned comment": ("python", "x = 1" + " " * 90 + "# far away\n"),
    "aligned table": ("python", "rows = [\n    ('a'," + " " * 30 + "1),\n]\n"),
}


@pytest.mark.parametrize("text", NATURAL, ids=lambda name: name.replace(" ", "-"))
def test_natural_text_raises_no_alarm(text: str) -> None:
    language, code = NATURAL[text]
    assert find_hidden(code, language=language) == []
    assert reveal(code, language=language).text == code


def test_a_finding_says_where_and_what() -> None:
    code = f"a = 1\nb = 'x{RLO}'\n"
    (finding,) = find_hidden(code, language="python")
    assert (finding.line, finding.column, finding.offset) == (2, 7, 12)
    assert code[finding.offset] == finding.char == RLO
    assert finding.name == "right-to-left override"
    assert finding.stand_in == "⟨U+202E⟩"


def test_revealed_text_maps_both_ways() -> None:
    code = f"a{RLO}b\u200bc"
    revealed = reveal(code)
    assert revealed.text == "a⟨U+202E⟩b⟨U+200B⟩c"
    assert [revealed.text[start:end] for start, end, _ in revealed.spans] == ["⟨U+202E⟩", "⟨U+200B⟩"]
    for place, character in enumerate(code):
        shown = revealed.from_source(place)
        assert revealed.to_source(shown) == place
        assert revealed.text[shown] in (character, "⟨")
    assert revealed.from_source(len(code)) == len(revealed.text)
    assert revealed.to_source(5) == 1  # the middle of a stand-in belongs to its character


def test_the_summary_is_one_line() -> None:
    assert summary([]) == ""
    assert summary(find_hidden(f"x\ny\nz{RLO}")) == "1 hidden character: right-to-left override (line 3)"
    code = f"a{RLO}\nb{RLO}\nc{RLO}\nd{RLO}\u200b\nval\u0435 = 1\nx\u00a0= 1"
    assert summary(find_hidden(code)) == (
        "5 hidden characters, 1 look-alike character, 1 unusual space: right-to-left override (lines 1, 2, 3, …), "
        "zero width space (line 4), Cyrillic small letter ie, looks like e (line 5) and 1 more kind"
    )


@settings(deadline=None)
@given(st.text(max_size=60))
def test_no_control_character_is_left_unrevealed(text: str) -> None:
    revealed = reveal(text).text
    assert not [
        c for c in revealed.replace("\r\n", "\n") if unicodedata.category(c) in ("Cc", "Cs") and c not in "\n\t"
    ]
    assert not [c for c in revealed if c in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"]


@settings(deadline=None)
@given(
    st.text(alphabet="ab_ \n\"'#/*`\\аеxΔ漢\u200b\u202eﬁ！", max_size=80),
    st.sampled_from(["python", "shell", "java", None]),
)
def test_stand_ins_can_be_taken_back(text: str, language: str | None) -> None:
    revealed = reveal(text, language=language)
    back, done = [], 0
    for start, end, finding in revealed.spans:
        back += [revealed.text[done:start], finding.char]
        done = end
    assert "".join(back) + revealed.text[done:] == text


FLOODS = ["é" + "a" * 100_000, "é" + '"' * 100_000, "é" + "\\" * 100_000, "é'''" + "'" * 100_000, "é" + "/*" * 50_000]
FLOODS += ["é" + " " * 100_000 + "#", "а" * 100_000, "aа" * 50_000, "\u202e" * 100_000, "`${" * 100_000 + "é"]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("language", ["python", "javascript", "shell", "applescript", "powershell"])
def test_cost_grows_with_the_length_only(language: str) -> None:
    """Anything that grew with the square of the length would take hours here."""
    for flood in FLOODS:
        assert len(reveal(flood, language=language).text) >= len(flood)
