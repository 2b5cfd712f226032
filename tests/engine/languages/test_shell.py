"""The shell behaves as at a prompt: real bash in a real terminal, one table of what people and models write."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from oi_tui.engine.approval import InputCancelled, InputRequest
from oi_tui.engine.languages.place import Place, environment_for_code
from oi_tui.engine.languages.shell import Shell
from tests.engine.languages.running import Answers, Running, approved, run, until

pytestmark = [
    pytest.mark.terminal,
    pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed"),
]


@pytest_asyncio.fixture
async def shell(tmp_path: Path) -> AsyncIterator[Shell]:
    made = Shell(place=Place(cwd=tmp_path, environment=environment_for_code()))
    yield made
    await made.aclose()


CASES: list[tuple[str, list[tuple[str, str]]]] = [
    ("hello", [("echo hello", "hello\n")]),
    ("nothing printed", [("true", "")]),
    ("state", [("x=3; export Y=4; f() { echo f$x; }", ""), ("f; sh -c 'echo $Y'", "f3\n4\n")]),
    ("cd", [("mkdir -p 'a b' && cd 'a b'", ""), ('basename "$PWD"', "a b\n")]),
    ("aliases", [("alias hi='echo hi there'", ""), ("hi", "hi there\n")]),
    ("arrays", [("declare -A m=([k]=v)", ""), ("echo ${m[k]}", "v\n")]),
    ("status shown", [("false", "exit status 1\n")]),
    ("status starts a new line", [("printf x; (exit 7)", "x\nexit status 7\n")]),
    ("status of the last block", [("false", "exit status 1\n"), ("echo $?", "1\n")]),
    ("exit ends the block, not the state", [("x=1; exit 3", "exit status 3\n"), ("echo $x", "1\n")]),
    (
        "exit keeps functions, options, folder",
        [
            ("mkdir -p d; cd d; f() { echo f; }; shopt -s nullglob; exit", ""),
            ("f; shopt -q nullglob && basename $PWD", "f\nd\n"),
        ],
    ),
    (
        "set -e ends the block at a failure",
        [
            ("x=1\nset -e\nfalse\necho never", "exit status 1\n"),
            ("echo $x; false; echo goes on", "1\ngoes on\n"),
        ],
    ),
    (
        "set -u",
        [
            (
                "set -u\necho $nothing_of_that_name\necho goes on",
                "bash: nothing_of_that_name: unbound variable\ngoes on\n",
            )
        ],
    ),
    ("set -x shows the script and nothing else", [("set -x\necho a\nset +x", "++ echo a\na\n++ set +x\n")]),
    ("here-document", [("cat <<EOF\na $((1+1))\n'b'\nEOF\necho end", "a 2\n'b'\nend\n")]),
    ("multi-line quotes", [("echo 'one\n  two\n\nthree'", "one\n  two\n\nthree\n")]),
    ("a comment as the last line", [("echo a # not the end", "a\n"), ("echo b\n# end", "b\n")]),
    ("continued lines", [("echo a \\\n  b", "a b\n"), ("false ||\n  echo c", "c\n")]),
    (
        "loops and pipes",
        [('for i in 1 2 3; do\n  echo $i\ndone | while read n; do echo -n "<$n>"; done\necho', "<1><2><3>\n")],
    ),
    ("exclamation marks are no history", [('echo "Hello World!" !!', "Hello World! !!\n")]),
    ("the last argument", [("mkdir -p deep/er && cd $_ && basename $PWD", "er\n")]),
    ("PIPESTATUS", [("false | true\necho ${PIPESTATUS[*]}", "1 0\n")]),
    ("a trap of the user's own", [("trap 'echo dbg' DEBUG\ntrue\ntrap - DEBUG", "dbg\ndbg\n")]),
    ("return", [("echo a\nreturn 4\necho b", "a\nexit status 4\n")]),
    ("stdin is empty of our doings", [('read -t 0.1 x || echo "nothing: $x"', "nothing: \n")]),
    ("stderr comes too", [("echo a; echo b >&2; echo c", "a\nb\nc\n")]),
    ("NUL and invalid UTF-8", [("printf 'a\\0b\\xff\\xfec\\n'", "a\0b��c\n")]),
    ("text that only looks like control", [("echo 'end 0'; echo 'at 5'", "end 0\nat 5\n")]),
    ("colour survives", [("printf '\\033[31mred\\033[0m\\n'", "\x1b[31mred\x1b[0m\n")]),
    (
        "the terminal is no obstacle",
        [("tput cols; stty size; test -t 0 && test -t 1 && echo tty", "100\n40 100\ntty\n")],
    ),
    ("pagers do not wait", [("git --version >/dev/null && echo $PAGER $GIT_PAGER", "cat cat\n")]),
    ("a long line", [("x=" + "a" * 20_000 + "\necho ${#x}", "20000\n")]),
    ("no final newline is needed", [("echo a", "a\n")]),
    ("Windows line ends are the script's own", [("echo a\r", "a\r\n")]),
    ("kill of a job", [("sleep 60 & kill $!; wait $! 2>/dev/null; echo ended", "ended\n")]),
]


@pytest.mark.parametrize(("blocks"), [blocks for _, blocks in CASES], ids=[name for name, _ in CASES])
async def test_as_at_a_prompt(shell: Shell, blocks: list[tuple[str, str]]) -> None:
    for code, output in blocks:
        assert _without_job_messages((await run(shell, code)).output) == output
    assert (await run(shell, "echo next")).output == "next\n"


def _without_job_messages(output: str) -> str:
    """Without "[1] 4711" and "[1]+  Terminated  sleep 60", which interactive shells print about jobs."""
    return "".join(line for line in output.splitlines(keepends=True) if not line.startswith("["))


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("if true; then\n  echo a", "line 3: syntax error: unexpected end of file"),
        ("echo 'open", "unexpected EOF while looking for matching"),
        ("echo a\nfor", "line 2: syntax error"),
        ("no_such_command_here", "no_such_command_here: command not found"),
        ("./no_such_file", "No such file or directory"),
    ],
)
async def test_a_faulty_script_is_an_error_and_not_the_end(shell: Shell, code: str, says: str) -> None:
    ran = await run(shell, code)
    assert says in ran.output
    assert "exit status " in ran.output.splitlines()[-1]
    assert (await run(shell, "echo next")).output == "next\n"


async def test_the_script_is_run_byte_for_byte(shell: Shell, tmp_path: Path) -> None:
    code = 'cat "$BASH_SOURCE" > copy # é \t ✓\n\n  \n'
    await run(shell, code)
    assert (tmp_path / "copy").read_bytes() == code.encode()


async def test_the_line_is_lit_while_it_runs_and_timed(shell: Shell) -> None:
    code = "sleep 0.15\nwork() {\n  sleep 0.15\n}\nwork\nfor i in 1 2; do\n  sleep 0.15\ndone\n"
    code += "cat <<EOF\nx\nEOF\nsleep 0.15"
    ran = await run(shell, code)
    assert ran.lines[0] == 1
    slow = [1, 3, 7, 12]
    assert list(dict.fromkeys(line for line in ran.lines if line in slow)) == slow
    times = ran.contents("line_times")[0]
    assert isinstance(times, dict)
    assert all(times[str(line)] > 0.1 for line in slow)
    assert ran.contents("active_line")[-1] is None


async def test_a_hot_loop_is_not_slowed_and_its_lines_are_still_seen(shell: Shell) -> None:
    code = "i=0\nwhile ((i < 150000)); do\n  ((i++))\n  x=$i\ndone\nsleep 0.2\necho $i"
    ran = await run(shell, code)
    assert ran.output == "150000\n"
    if os.path.exists("/proc/self/mem"):
        assert {2, 3, 4} & set(ran.lines[3:])
        assert 6 in ran.lines


async def test_functions_of_an_earlier_block_light_no_line_of_this_one(shell: Shell) -> None:
    await run(shell, "\n\nhelper() {\n  sleep 0.2\n}")
    ran = await run(shell, "helper\ntrue\ntrue\ntrue")
    times = ran.contents("line_times")[0]
    assert isinstance(times, dict)
    assert max(times, key=lambda line: times[line]) == "1"


@pytest.mark.parametrize(
    "code",
    [
        "while :; do :; done",
        "sleep 600",
        "sleep 600 | cat",
        "yes",
        "( sleep 600 )",
        "echo $(sleep 600)",
        "python3 -c 'while True: pass'",
        "trap 'echo caught' INT; sleep 600",
        "cat < /dev/zero > /dev/null",
    ],
)
async def test_an_interrupt_ends_the_code_and_keeps_the_state(shell: Shell, code: str) -> None:
    await run(shell, "v=kept")
    running = Running(shell, f"echo started\n{code}")
    await running.prints("started")
    await shell.interrupt()
    ran = await running.end()
    assert ran.output.endswith("interrupted\n")
    assert (await run(shell, "echo $v")).output.replace("caught\n", "") == "kept\n"


async def test_leaving_the_iterator_interrupts(shell: Shell) -> None:
    await run(shell, "v=kept")
    running = Running(shell, "echo started; sleep 600; echo never")
    await running.prints("started")
    running.task.cancel()
    await until(running.task.done)
    assert not shell.is_running
    assert (await run(shell, "echo $v; jobs")).output == "kept\n"


async def test_a_program_that_ignores_interrupts_is_ended_and_the_shell_lives(shell: Shell) -> None:
    await run(shell, "v=kept")
    running = Running(shell, "(trap '' INT; echo started; sleep 600; sleep 600)")
    await running.prints("started")
    await shell.interrupt()
    await running.end()
    assert (await run(shell, "echo $v")).output == "kept\n"


async def test_a_shell_that_cannot_be_interrupted_is_replaced_and_says_so(shell: Shell) -> None:
    await run(shell, "v=lost")
    running = Running(shell, "trap '' INT\necho started\nwhile :; do :; done")
    await running.prints("started")
    await shell.interrupt()
    ran = await running.end()
    assert ran.output.endswith("interrupted\n")
    assert "did not stop and was ended; its variables, functions and jobs are gone" in ran.notices[-1]
    assert (await run(shell, 'echo "<$v>"')).output == "<>\n"


@pytest.mark.parametrize("code", ["kill -9 $$", "exec true", "exec sh -c 'kill -9 $$'"])
async def test_a_shell_that_ends_is_replaced_in_the_same_folder(shell: Shell, tmp_path: Path, code: str) -> None:
    (tmp_path / "sub").mkdir()
    await run(shell, "cd sub; v=lost")
    ran = await run(shell, code)
    assert ran.output.startswith("The shell ")
    assert "are gone. The next block starts a new one." in ran.notices[-1]
    assert (await run(shell, 'echo "<$v>" $(basename $PWD)')).output == "<> sub\n"


async def test_a_shell_that_died_between_two_blocks_says_so(shell: Shell) -> None:
    pid = int((await run(shell, "echo $$")).output)
    os.kill(pid, signal.SIGKILL)
    await until(lambda: _state(pid) in "ZX")
    ran = await run(shell, "echo next")
    assert ran.output == "next\n"
    assert ["SIGKILL" in text for text in ran.notices] == [True]


def _state(pid: int) -> str:
    """One letter as in `ps`; X for what is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "X"


async def test_questions_are_asked_and_passwords_are_masked(shell: Shell) -> None:
    answers = Answers("Ada", "s3cret", "y")
    code = (
        'read -p "Name? " name; echo "hi $name"\n'
        'read -s -p "Password: " word; echo; echo "${#word} letters"\n'
        "python3 -c \"print('again:', input('Go on? [y/N] '))\""
    )
    ran = await run(shell, code, answer=answers)
    assert [(r.prompt.strip(), r.password) for r in answers.requests] == [
        ("Name?", False),
        ("Password:", True),
        ("Go on? [y/N]", False),
    ]
    assert "hi Ada\n" in ran.output
    assert "6 letters\n" in ran.output
    assert "again: y\n" in ran.output
    assert "s3cret" not in ran.output


async def test_a_password_asked_on_the_terminal_itself(shell: Shell) -> None:
    """As ssh and sudo do it, whatever stdin is."""
    answers = Answers("hush")
    code = "python3 -c 'import getpass; print(len(getpass.getpass(\"Passphrase: \")))' < /dev/null"
    ran = await run(shell, code, answer=answers)
    assert answers.requests[0].password
    assert answers.requests[0].prompt == "Passphrase: "
    assert ran.output.endswith("4\n")


async def test_input_until_its_end(shell: Shell) -> None:
    ran = await run(shell, "cat > typed; wc -l < typed", answer=Answers("one", "two", "\x04"))
    assert ran.output.endswith("2\n")


async def test_refusing_to_answer_interrupts(shell: Shell) -> None:
    async def refuse(request: InputRequest) -> str:
        raise InputCancelled

    ran = await run(shell, "read x; echo never", answer=refuse)
    assert ran.output.endswith("interrupted\n")
    assert (await run(shell, "echo next")).output == "next\n"


async def test_a_question_that_ends_by_itself_is_taken_back(shell: Shell) -> None:
    asked: list[InputRequest] = []

    async def never(request: InputRequest) -> str:
        asked.append(request)
        await asyncio.Event().wait()
        return ""

    ran = await run(shell, 'read -t 0.5 -p "quick! " x; echo too late', answer=never)
    assert asked[0].prompt == "quick! "
    assert ran.output.endswith("too late\n")


async def test_what_was_typed_for_a_program_is_never_run_as_a_command(shell: Shell, tmp_path: Path) -> None:
    """The answer comes when the program that asked has ended: it must not be taken for the next command."""
    code = 'python3 -c \'import sys,termios; print("n? ", end="", flush=True); sys.stdin.readline()\''
    await run(shell, code, answer=Answers("x\ntouch executed\ntouch executed"))
    await run(shell, "true")
    assert not (tmp_path / "executed").exists()


async def test_jobs_go_on_in_the_background_and_are_listed(shell: Shell) -> None:
    ran = await run(shell, "(sleep 0.3; echo late) &\nsleep 60 &\necho first")
    assert "first" in ran.output
    await until(lambda: any("sleep 60" in command for _, command in shell.background()))
    seen = ""
    while "late" not in seen:
        seen += (await run(shell, "sleep 0.05")).output
    await shell.aclose()
    assert shell.background() == []


async def test_fifty_megabytes_without_a_newline(shell: Shell) -> None:
    total = 0
    async for chunk in shell.run(approved("head -c 50000000 /dev/zero | tr '\\0' x"), answer=Answers()):
        total += chunk.text.count("x")
    assert total == 50_000_000


async def test_keys_of_the_model_are_not_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    shell = Shell(place=Place(cwd=tmp_path))
    try:
        assert "sk-secret" not in (await run(shell, "env; set")).output
    finally:
        await shell.aclose()


async def test_the_start_up_file_of_the_user_counts(empty_machine: Path, tmp_path: Path) -> None:
    (empty_machine / ".bashrc").write_text("alias greet='echo greetings'\necho noise\nPS1='$(date) > '\n")
    shell = Shell(place=Place(cwd=tmp_path))
    try:
        assert (await run(shell, "greet")).output == "greetings\n"
    finally:
        await shell.aclose()


@pytest.mark.parametrize("content", ["exit 1", "exec true"])
async def test_a_start_up_file_that_ends_the_shell_is_left_out(
    empty_machine: Path, tmp_path: Path, content: str
) -> None:
    (empty_machine / ".bashrc").write_text(content + "\n")
    shell = Shell(place=Place(cwd=tmp_path))
    try:
        ran = await run(shell, "echo works")
        assert ran.output == "works\n"
        assert "start-up file" in ran.notices[0]
    finally:
        await shell.aclose()


async def test_limits_of_time(tmp_path: Path) -> None:
    shell = Shell(place=Place(cwd=tmp_path, idle_limit=0.3))
    try:
        ran = await run(shell, "echo a; sleep 600")
        assert ran.output.startswith("a\n")
        assert ran.output.endswith("\nstopped after 0.3 s without output (idle limit)\n")
        assert (await run(shell, "echo next")).output == "next\n"
    finally:
        await shell.aclose()


async def test_killing_loses_the_state_and_the_next_block_works(shell: Shell) -> None:
    await run(shell, "v=1")
    running = Running(shell, "echo started; sleep 600")
    await running.prints("started")
    await shell.restart()
    ran = await running.end()
    assert "was ended; its variables" in ran.notices[-1]
    assert (await run(shell, 'echo "<$v>"')).output == "<>\n"


async def test_only_one_block_at_a_time(shell: Shell) -> None:
    from oi_tui.engine.errors import LanguageError

    running = Running(shell, "echo started; sleep 600")
    await running.prints("started")
    with pytest.raises(LanguageError, match="busy"):
        await run(shell, "echo second")
    await shell.interrupt()
    await running.end()


@pytest.mark.parametrize("program", ["zsh", "dash", "sh"])
async def test_other_shells_by_choice(tmp_path: Path, program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    shell = Shell(place=Place(cwd=tmp_path, shell=program))
    try:
        assert (await run(shell, "x=1; echo hello")).output == "hello\n"
        assert (await run(shell, "echo $x; false")).output == "1\nexit status 1\n"
        assert (await run(shell, "echo $?")).output == "1\n"
        assert "rror" in (await run(shell, "for")).output
        running = Running(shell, "echo started\nsleep 600")
        await running.prints("started")
        await shell.interrupt()
        await running.end()
        assert (await run(shell, "echo $x", answer=Answers())).output == "1\n"
        assert "hi Ada" in (await run(shell, "printf 'n? '; read n; echo hi $n", answer=Answers("Ada"))).output
    finally:
        await shell.aclose()


async def test_a_job_of_an_earlier_block_lights_no_line_of_a_later_one(shell: Shell) -> None:
    await run(shell, "true\ntrue\ntrue\n(while :; do sleep 0.02; done) &\ntrue")
    ran = await run(shell, "sleep 0.3\ntrue")
    assert set(ran.lines) <= {1, 2}


async def test_background_processes_are_listed_and_may_be_kept(tmp_path: Path) -> None:
    from oi_tui.engine.languages.registry import Registry

    registry = Registry(place=Place(cwd=tmp_path))
    shell = registry.get("bash")
    assert shell is not None
    pid = int((await run(shell, "nohup sleep 600 >/dev/null 2>&1 & echo $!")).output.split("\n")[-2])
    await until(lambda: (pid, "sleep 600") in registry.background())
    await registry.aclose(keep_background=True)
    assert registry.background() == []
    assert _state(pid) == "S"
    os.kill(pid, signal.SIGKILL)


async def test_a_shell_lost_while_its_run_was_cancelled_is_told_later(shell: Shell) -> None:
    running = Running(shell, "trap '' INT\necho started\nwhile :; do :; done")
    await running.prints("started")
    running.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running.task
    assert ["did not stop" in chunk.text for chunk in shell.take_notices()] == [True]
    assert (await run(shell, "echo next")).notices == []


async def test_a_broken_answerer_stops_the_code_and_is_passed_on(shell: Shell) -> None:
    async def broken(request: InputRequest) -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await run(shell, "read x; echo never", answer=broken)
    assert (await run(shell, "echo next")).output == "next\n"


async def test_half_characters_are_no_trouble(shell: Shell) -> None:
    assert (await run(shell, "echo a\ud800b | wc -c")).output == "6\n"
    assert (await run(shell, "echo a\udcffb | wc -c")).output == "4\n"


@pytest.mark.parametrize(
    "code",
    [
        "PROMPT_COMMAND='echo mine'; PS1='mine> '",
        "unset PROMPT_COMMAND",
        "PROMPT_COMMAND=(a b); PS0=before",
        "source ~/.bashrc",
        "printf() { echo no; }; read() { echo no; }; alias printf=false",
        "exec <&-",
        "exec 2>/dev/null",
        "stty raw -echo",
        "set -o noclobber; set -o noglob; set -f; IFS=x; set -o posix",
        "shopt -s extdebug",
        'cd /; rmdir "$OLDPWD"',
    ],
)
async def test_what_the_script_does_to_the_shell_does_not_cut_us_off(
    shell: Shell, empty_machine: Path, code: str
) -> None:
    (empty_machine / ".bashrc").write_text("PROMPT_COMMAND='echo other'; PS1='other> '; trap 'true' DEBUG\n")
    await run(shell, "v=kept")
    await run(shell, code)
    assert (await run(shell, "builtin echo $v")).output == "kept\n"
    running = Running(shell, "builtin echo started; sleep 600")
    await running.prints("started")
    await shell.interrupt()
    await running.end()
    assert "kept\n" in (await run(shell, "builtin echo $v")).output


async def test_a_shell_that_replaced_itself_is_won_back_by_an_interrupt(shell: Shell) -> None:
    async def wait(request: InputRequest) -> str:
        await asyncio.Event().wait()
        return ""

    running = Running(shell, "export v=kept; echo started; exec bash --norc", answer=wait)
    await running.prints("started")
    await until(lambda: running.ran.output.endswith(("$ ", "# ")))
    await shell.interrupt()
    await running.end()
    assert (await run(shell, "echo $v")).output == "kept\n"
