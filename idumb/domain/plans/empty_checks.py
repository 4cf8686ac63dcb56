"""Checks that prove nothing: the shell hides a failure, nothing in them can fail, or they ran no test.

The first two are read from the text: pipes in lists (`a || b`, `a; b`, `a & b`), groups, `if`, `case` and `for`. There
is no answer for text that waits or keeps an exit code: `while`, functions, `trap`, `$?`. Test programs and builds are
reported always, others only if nothing else in the check can fail.

The last is read from the summaries that a command printed, if it names a test program, or a program that starts one,
such as `make` and `npm`. Output without a summary is not judged. If one test program of several ran a test, the check
ran tests.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from idumb.domain.plans import programs, shell
from idumb.domain.plans.shell import Command, Mark

_MOST = 100  # commands of a check that is judged; the time grows with their square
_OPAQUE = frozenset({"break", "continue", "eval", "function", "return", "trap"})
_JOINS = ("&&", "||")
_ENDS = (";", "&", "\n", "", ")", ";;")

_THEN = Mark("then", "then")
_Pipe = Sequence[Command]
_Parts = Sequence[_Pipe | Mark]


class _Group(NamedTuple):
    """An open group, `if`, `case` or `for`: whether it runs, whether this part of it runs, and whether a branch did.

    `errexit` is that before it. In a condition, and before `&&` or `||`, a failure does not end the script.
    """

    runs: bool
    active: bool
    taken: bool
    errexit: bool
    is_joined: bool


class _State(NamedTuple):
    """A point between two pipes: whether the last one succeeded, the operator behind it, whether the shell ended."""

    succeeds: bool = True
    joined: str = ";"
    errexit: bool = False
    ended: bool = False
    groups: tuple[_Group, ...] = ()

    @property
    def runs_next(self) -> bool:
        is_joined = self.joined not in _JOINS or (self.joined == "&&") == self.succeeds
        return is_joined and not self.ended and (not self.groups or self.groups[-1].active)


class Hidden(NamedTuple):
    """A program whose failure a check hides, and what decides instead: a command, `&`, `if`, `case` or `for`."""

    command: str
    by: str


@functools.lru_cache(maxsize=1024)
def hidden_failure(text: str) -> Hidden | None:
    """Return the first program whose failure a check for `/bin/sh -c` hides; None also if its text does not show it."""
    parts = _parts(text)
    hidden, matter = list[tuple[Command, str, bool]](), list[Command]()
    for number, pipe in enumerate(parts):
        if isinstance(pipe, Mark):
            continue
        *before, last = pipe
        is_passive = last.is_filter or last.is_sure
        lost = (each for each in before if (is_passive and each.decides) or programs.judges(each.own, only_tests=True))
        hidden += ((command, last.text, False) for command in lost)
        if _matters(number, parts):
            matter.append(last)
        elif _constant(pipe) is None:
            guards = last.after in _JOINS or parts[number + 1 : number + 2] == [_THEN]
            asserts = programs.has_trait(last.program, programs.COMPARE) and not guards
            hidden.append((last, _decider(parts, [number]), asserts))
    others = any(command.decides for command in matter)
    awaited = any(command.after != "&" and command.decides for command, _, _ in hidden)
    for command, by, asserts in hidden:
        is_alone = command.decides and not others and not (command.after == "&" and awaited)  # else it is a server
        if asserts or is_alone or programs.judges(command.own, only_tests=False):
            return Hidden(command.text, by)
    return None


def why_sure(text: str) -> str:
    """Return why a check for `/bin/sh -c` passes whatever the work is; "" if it may fail, or its text does not show."""
    parts = _parts(text)
    pipes = [part for part in parts if not isinstance(part, Mark)]
    if not pipes or "pipefail" in text:
        return ""
    last = pipes[-1][-1]
    writes = any(target.text != "/dev/null" for target in last.targets)
    runs_another = not last.own and not all(word.literal for word in last.words)  # A=$(make)
    if writes or runs_another or not all(state.succeeds for state in _ends(parts)):
        return ""
    return f"`{_decider(parts, range(len(parts))) or last.text}` decides, and it always succeeds"


def _parts(text: str, depth: int = 0) -> _Parts:
    """Return the pipes of a check and what groups them; none if it cannot be read.

    A shell that runs a text, as in `bash -ec '…'`, is that text.
    """
    parts = shell.read(text).parts
    commands = [part for part in parts if not isinstance(part, Mark)]
    words = commands[0].own if len(commands) == 1 and not commands[0].negated else []
    if words and depth < shell.MOST_NESTED and (words[0] == "eval" or programs.has_trait(words[0], programs.SHELL)):
        inner, ends = shell.inner_script(words), any(re.fullmatch(r"-[a-z]*e[a-z]*", word) for word in words)
        return _parts("set -e\n" * ends + inner, depth + 1) if inner is not None and "pipefail" not in text else ()
    is_whole = bool(commands) and len(parts) <= _MOST and parts[-1].after in _ENDS
    return [*_split(_with_ends(parts))] if is_whole and not any(map(_is_opaque, commands)) else ()


_COMPARES_WORDS = frozenset({"-n", "-z", "=", "!=", "==", "-eq", "-ne", "-gt", "-ge", "-lt", "-le"})
_SEARCHES = frozenset({"grep", "egrep", "fgrep"})
_ANYTHING = frozenset({"", "^", "$", ".*"})
_SHOWS = r"git (?:status|diff)(?!.* --(?:exit-code|quiet|check)\b)(?: -\S+)*|find \.(?!\S|.* -exec).*|(?:ls|pwd|date)"
_RUNS = r"(?:python[\d.]*|node|perl|ruby|php) -[cer]\s*"
_NOTHING = r"(?:pass|print\((?:'[^']*'|\"[^\"]*\"|\d*)\)|(?:import sys;\s*)?(?:\w+\.)?exit\(0?\)|\d)?[\s;]*"
_JUDGES_NOTHING = re.compile(f"{_SHOWS}|{_RUNS}{_NOTHING}")
"""Commands that show something of the repository, and programs without a statement that could fail."""


def _is_certain(command: Command, *, is_piped: bool) -> bool:
    """Whether a command always ends in one way: it passes on what it reads, compares fixed words, or finds nothing."""
    if command.program in ("test", "["):
        asked = [word for word in command.words[1:] if word.text != "]"]
        fixed = (word.literal and (word.text[:1] != "-" or word.text in _COMPARES_WORDS) for word in asked)
        return bool(asked) and all(fixed)
    if command.program in _SEARCHES and not _ANYTHING.isdisjoint(command.own):  # in every line
        return not command.negated and not any(word.startswith("-") and "v" in word for word in command.own[1:])
    return (is_piped and command.is_filter) or _JUDGES_NOTHING.fullmatch(" ".join(command.own)) is not None


def must_lack(text: str) -> tuple[str, ...]:
    """Return the files in which a check wants to find nothing, as in `! grep -q x FILE`: without them, it passes."""
    last = next(reversed(shell.read(text).parts), None)
    if not isinstance(last, Command) or not last.negated or last.program not in _SEARCHES:
        return ()
    if "-e" in last.own:  # no text is a file then
        return ()
    words = [word for word in last.words if not word.text.startswith("-")]
    return tuple(word.text for word in words[2:] if word.literal and not word.text.startswith(("/", "~")))


def _is_opaque(command: Command) -> bool:
    """Whether the exit code of other commands decides what it does, or it changes what follows."""
    echoes = command.program in ("echo", "printf")
    asks = any("$?" in text or "PIPESTATUS" in text for text in (*command.texts, *(t.text for t in command.targets)))
    waits = command.program == "wait" and len(command.own) > 1
    exits = command.program == "exit" and not (len(command.own) > 1 and command.own[1].isdigit())
    return command.program in _OPAQUE or (asks and not echoes) or waits or exits


def _after(state: _State, part: _Pipe | Mark, *, fails: bool) -> _State:
    """Return the state behind a pipe, if its last program fails or not; a pipe that does not run changes nothing."""
    if isinstance(part, Mark):
        return _at_mark(state, part, fails=fails)
    last, succeeds, errexit, ended = part[-1], state.succeeds, state.errexit, state.ended
    if state.runs_next:
        fixed = _constant(part)
        succeeds = fails == last.negated if fixed is None else fixed
        errexit = _errexit(last, errexit=errexit)
        exits = last.program == "exit" or (errexit and not (succeeds or last.negated or last.after in _JOINS))
        ended = exits and last.after != "&"
    return _State(succeeds or (last.after == "&" and not ended), last.after, errexit, ended, state.groups)


def _at_mark(state: _State, mark: Mark, *, fails: bool) -> _State:
    """Return the state behind a mark. `fails` decides what a text does not show: patterns, and the rounds of a loop."""
    if mark.word in shell.ENDS:
        runs, is_joined = state.runs_next, mark.after in _JOINS
        group = _Group(runs, runs, runs and mark.word in "({", state.errexit, is_joined)
        errexit = state.errexit and not is_joined and mark.word != "if"
        return state._replace(joined=";", errexit=errexit, groups=(*state.groups, group))
    *outer, group = state.groups
    if mark.after == mark.word:  # it divides the group
        goes = state.succeeds if mark.word == "then" else not (fails and mark.word in ("of", "do"))
        active = group.runs and not group.taken and goes
        errexit = state.errexit and mark.word != "elif"
        if mark.word == "then":
            errexit = group.errexit and not group.is_joined
        group = group._replace(active=active, taken=group.taken or (active and mark.word != "elif"))
        return state._replace(joined=";", errexit=errexit, groups=(*outer, group))
    is_subshell = group.runs and mark.word == ")"
    ended = state.ended and not is_subshell
    is_empty = group.runs and not ended and (not group.taken or (mark.word == "done" and not fails))
    succeeds = state.succeeds or is_empty or (mark.after == "&" and not ended)
    ended = ended or (is_subshell and group.errexit and not succeeds and not group.is_joined)
    errexit = group.errexit if mark.word == ")" else state.errexit or (group.errexit and group.is_joined)
    return _State(succeeds, mark.after, errexit, ended, tuple(outer))


def _ends(parts: _Parts) -> set[_State]:
    """Return every state that can be behind the pipes, whichever of their programs fail."""
    states = {_State()}
    for part in parts:
        states = {_after(state, part, fails=fails) for state in states for fails in (False, True)}
    return states


def _decider(parts: _Parts, failing: Collection[int]) -> str:
    """Return the command whose exit code the parts have if these fail, or the word that decides without one."""
    state, by = _State(), ""
    for number, part in enumerate(parts):
        before, state = state, _after(state, part, fails=number in failing)
        if isinstance(part, Mark):
            by = _BEGIN[part.word] if state.succeeds and not before.succeeds else by
        elif before.runs_next:
            by = part[-1].text or by
        by = "&" if state.joined == "&" else by
    return by


_BEGIN = {end: begin for begin, end in shell.ENDS.items()}


def _constant(pipe: Sequence[Command]) -> bool | None:
    """Return whether a pipe always succeeds, or never; None if its last program decides."""
    last = pipe[-1]
    if last.program in ("exit", "false"):
        return last.negated if last.program == "false" else last.own[1] == "0"
    return not last.negated if last.is_sure or _is_certain(last, is_piped=len(pipe) > 1) else None


def _matters(number: int, parts: _Parts) -> bool:
    """Return whether the parts can end differently because the last program of one pipe fails."""
    pairs = {tuple(_after(state, parts[number], fails=f) for f in (False, True)) for state in _ends(parts[:number])}
    for part in parts[number + 1 :]:
        is_loop = isinstance(part, Mark) and part.word == "done"  # a later round may succeed
        pairs = {tuple(_after(state, part, fails=f) for state in pair) for pair in pairs for f in (False, not is_loop)}
    return any(passed.succeeds != failed.succeeds for passed, failed in pairs)


def _errexit(command: Command, *, errexit: bool) -> bool:
    """Return whether a failure ends the script after this command."""
    words = command.own[1:] if command.program == "set" else []
    options = itertools.takewhile(lambda word: word not in ("-", "--"), words)  # arguments follow
    for option, value in itertools.pairwise((*options, "")):
        if option[:1] in "+-" and ("e" in option[1:] or (option.endswith("o") and value == "errexit")):
            errexit = option.startswith("-")
    return errexit


def _with_ends(parts: Sequence[Command | Mark]) -> Sequence[Command | Mark]:
    """Return the parts; each mark that begins a group has the operator after its end."""
    ends, known = list[str](), list[Command | Mark]()
    for part in reversed(parts):
        if isinstance(part, Mark) and part.word in _BEGIN:
            ends.append(part.after)
        is_begin = isinstance(part, Mark) and part.word in shell.ENDS
        known.append(Mark(part.word, ends.pop()) if isinstance(part, Mark) and is_begin else part)
    return known[::-1]


def _split(parts: Sequence[Command | Mark]) -> Iterator[_Pipe | Mark]:
    """Yield each mark, and the commands of each pipe together."""
    pipe: list[Command] = []
    for part in parts:
        if isinstance(part, Mark):
            yield part
            continue
        pipe.append(part)
        if part.after in (*_JOINS, *_ENDS):
            yield pipe
            pipe = []


_RAN = frozenset({
    "cancelled", "error", "errors", "fail", "failed", "failing", "flaky", "pass", "passed", "passes", "passing",
    "rerun", "subtests passed", "xfailed", "xpassed",
})  # fmt: skip
_SKIPPED = frozenset({"ignored", "pending", "skip", "skipped", "todo"})
_TEST_LIKE = r"(?i)test|spec|check|verify|(?:^|/)ci(?:\W|$)"
_NO_GO_TEST = r"-run[= ]['\"]?(?:\^\$|XXX|NONE|none)(?:['\"]|\s|$)"
_COLOURS = r"\x1b\[[0-9;?]*[A-Za-z]|\r"
_BUILDS = {"go test": "go build ./...", "cargo test": "cargo build"}

_PYTEST_WORDS = r"(?:subtests )?(?:passed|failed|errors?|skipped|xfailed|xpassed|rerun|deselected|warnings?)"
_PYTEST = (
    r"^=*[ ]?(?:no tests (?:ran|collected)[^=\n]*|\d+(?:/\d+)? tests? collected[^=\n]*"
    rf"|\d+ {_PYTEST_WORDS}(?:, \d+ {_PYTEST_WORDS})*) in [\d.]+ ?s(?:econds)?(?: \([\d:]+\))?[ ]?=*$"
)
_TAP = r"[#\u2139] \w+ +[\d.]+"
_SUMMARIES = (
    ("pytest", _PYTEST),
    ("the test program", rf"^[#\u2139] tests \d+\n(?=(?:{_TAP}\n)*?[#\u2139] pass )(?:{_TAP}\n?)+"),
    ("mocha", r"^ +\d+ passing(?: \([^)\n]*\))?$(?:\n+ +\d+ (?:pending|failing)$)*"),
    ("jest", r"^Tests: +(?:\d+ [a-z]+, )*\d+ total$|^No tests found, exiting with code 0$"),
    ("vitest", r"^ *Tests  +(?:no tests|(?:\d+ [a-z ]+?(?: \| )?)+ \(\d+\))$|^No test files found, exiting with .*$"),
    (
        "go test",
        r"^\?[ ]+\t\S+\t\[no test files\]$|^ok .*\[no tests to run\]$|^\t\S+\t\tcoverage: 0\.0% of statements$",
    ),
    ("cargo test", r"^ +Summary \[.*?\] +\d+ tests? run:.*$"),
    ("bun test", r"^ *\d+ pass\n(?: *\d+ (?:skip|todo|fail)\n)*"),
    ("deno test", r"^ok \| \d+ passed .*$"),
    ("playwright", r"^  \d+ (?:flaky|passed|skipped)\b.*$"),
    (
        "the test program",
        r"^No tests (?:executed!|were found!!!)$|^No test (?:matches|is available) .*$|^Result: NOTESTS$",
    ),
    ("the test program", r"\A(?![\s\S]*^ok \d)(?=[\s\S]*^1\.\.0\b)"),
)
"""What test programs print at their end; text without counts says that no test ran. Few commands need the patterns."""
_TOTALS = (
    ("rspec", r"^(?P<all>\d+) examples?, \d+ failures?(?:, (?P<skipped>\d+) pending)?(?:, .*)?$"),
    ("minitest", r"^(?P<all>\d+) (?:runs|tests), \d+ assertions, .*, (?P<skipped>\d+) (?:skips|omissions)\b.*$"),
    ("mix test", r"^(?P<all>\d+) tests?, \d+ failures?(?:, (?P<skipped>\d+) (?:skipped|excluded))?$"),
    (
        "phpunit",
        r"^Tests: (?P<all>\d+), Assertions: \d+(?:, (?!Skip)[\w ]+: \d+)*(?:, Skipped: (?P<skipped>\d+))?.*\.$",
    ),
    ("phpunit", r"^OK \((?P<all>\d+) tests?, \d+ assertions?\)$"),
    ("maven", r"^(?:\[\w+\] )?Tests run: (?P<all>\d+), Failures: .*, Skipped: (?P<skipped>\d+)\b.*$"),
    ("dotnet test", r"^Total tests: (?P<all>\d+)$"),
    ("dotnet test", r"^\w+! +- Failed: .*, Skipped: +(?P<skipped>\d+), Total: +(?P<all>\d+)\b.*$"),
    ("swift test", r"(?:Executed|Test run with) (?P<all>\d+) tests?\b(?:, with (?P<skipped>\d+) tests? skipped)?"),
)
"""The same of those that count skipped tests among all."""
_COUNTS = r"(\d+) ((?:subtests )?[a-z]+)|\b([a-z]+) +(\d+)"
_UNITTEST = r"(?m)^Ran (\d+) tests? in [\d.]+s\n\s*(?:OK|NO TESTS RAN)(?: \((.*)\))?$"
_UNITTEST_SKIPS = r"(?m)^s+$|\.\.\. skipped "
_UNITTEST_RUNS = r"(?m)^s*[.x][.sx]*$|\.\.\. (?:ok|expected failure)$"
_GO_RAN = r"(?m)^ok +\t?\S+\t(?!.*\[no tests to run\]$)"
_CARGO_BINARY = r"(?m)^ +(?:Running|Doc-tests) "
_CARGO = r"(?m)^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored; .*$"


class _Summary(NamedTuple):
    """One summary of a test program: the tests that ran, and those that it skipped."""

    tool: str
    ran: int
    skipped: int = 0


def ran_no_test(command: str, output: str) -> str:
    """Return why a check that passed ran no test, with the fix; "" if it ran one, or if its output does not tell."""
    if not any(_may_run_tests(part.own) for part in shell.read(command).commands):
        return ""
    summaries = [*_summaries(re.sub(_COLOURS, "", output))]
    if not summaries or any(summary.ran for summary in summaries):
        return ""
    tool, _, skipped = max(summaries, key=lambda summary: summary.skipped)
    if skipped:
        tests = "the only test" if skipped == 1 else f"all {skipped} tests"
        fix = "Remove the skip, or provide what the tests need"
        return f"{tool} skipped {tests}, so the check proves nothing. {fix}"
    fix = "Add a test that it finds, or name the files of the tests in the command"
    if tool in _BUILDS:
        fix = f"Add a test that it finds; to prove only a build, write `{_BUILDS[tool]}`"
    return f"{tool} ran no test, so the check proves nothing. {fix}"


def _may_run_tests(words: Sequence[str]) -> bool:
    """Return whether a simple command runs tests, or starts something of the project that may do so."""
    if not words or programs.runs_nothing(words) or re.search(_NO_GO_TEST, " ".join(words)):
        return False
    name = words[0].rpartition("/")[2]
    if programs.judges(words, only_tests=True) or programs.has_trait(name, programs.BUILD, programs.STARTS):
        return True
    if programs.has_trait(name, programs.SHELL, programs.INTERPRETER):
        is_text = any(word.startswith("-") and word[-1] in "ce" for word in words[1:2])
        return not is_text and any(re.search(_TEST_LIKE, word) for word in words[1:3])
    return "/" in words[0] and re.search(_TEST_LIKE, words[0]) is not None


def _summaries(text: str) -> Iterator[_Summary]:
    for tool, pattern in _SUMMARIES:
        for match in re.finditer(pattern, text, re.MULTILINE):
            pairs = [
                (word or other, int(number or count)) for number, word, other, count in re.findall(_COUNTS, match[0])
            ]
            ran, skipped = (sum(number for word, number in pairs if word in words) for words in (_RAN, _SKIPPED))
            yield _Summary(tool, ran, skipped)
    for tool, pattern in _TOTALS:
        for match in re.finditer(pattern, text, re.MULTILINE):
            skips = int(match.groupdict().get("skipped") or 0)
            yield _Summary(tool, int(match["all"]) - skips, skips)
    yield from _of_unittest(text)
    yield from (_Summary("go test", 1) for _ in re.findall(_GO_RAN, text))
    results = re.findall(_CARGO, text)
    if 0 < len(re.findall(_CARGO_BINARY, text)) <= len(results):  # else a binary has a test harness of its own
        yield from (_Summary("cargo test", int(passed) + int(failed), int(skips)) for passed, failed, skips in results)


def _of_unittest(text: str) -> Iterator[_Summary]:
    """Yield each result. Versions disagree whether "Ran N tests" counts skipped tests, so their progress tells."""
    start = 0
    for match in re.finditer(_UNITTEST, text):
        before, start = text[start : match.start()], match.end()
        skips = re.search(r"skipped=(\d+)", match[2] or "")
        skipped = int(skips[1]) if skips else 0
        all_skipped = re.search(_UNITTEST_SKIPS, before) is not None and re.search(_UNITTEST_RUNS, before) is None
        yield _Summary("unittest", 0 if skipped and all_skipped else int(match[1]), skipped)
