"""Checks that prove nothing: the shell hides a failure, nothing in them can fail, or they ran no test.

The first two are read from the text, as lists of pipes: `a | b`, `a || b`, `a; b`, `a & b`. There is no answer for text
that decides by itself, such as `if`, loops, functions, `trap` and `$?`, nor for a group that a check does not begin
with. Test programs and builds are reported always, others only if nothing else in the check can fail.

The last is read from the summaries that a command printed, if it names a test program, or a program that starts one,
such as `make` and `npm`. Output without a summary is not judged. If one test program of several ran a test, the check
ran tests.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from idumb.domain.plans import programs, shell
from idumb.domain.plans.shell import Command

PIPE, FALLBACK, SEQUENCE, BACKGROUND = "pipe", "fallback", "sequence", "background"
_MOST = 100  # commands of a check that is judged; the time grows with their square
_OPAQUE = frozenset({"break", "continue", "eval", "function", "return", "trap"})
_JOINS = ("&&", "||")
_ENDS = (";", "&", "\n", "")

_Pipes = Sequence[Sequence[Command]]


class _State(NamedTuple):
    """A point between two pipes: whether the last one succeeded, the operator behind it, whether the shell ended."""

    succeeds: bool = True
    joined: str = ";"
    errexit: bool = False
    ended: bool = False

    @property
    def runs_next(self) -> bool:
        return not self.ended and (self.joined not in _JOINS or (self.joined == "&&") == self.succeeds)


class Hidden(Struct, frozen=True):
    """A program whose failure the check hides. `way` says how, `by` is the command whose exit code counts instead."""

    command: str
    way: str
    by: str


@functools.lru_cache(maxsize=1024)
def hidden_failures(text: str) -> tuple[Hidden, ...]:
    """Return the programs whose failure a check for `/bin/sh -c` hides; none if that cannot be read from its text."""
    pipes = _pipes(text)
    if not any(command.after for pipe in pipes for command in pipe):
        return ()
    hidden, matter = list[tuple[Command, str, str]](), list[Command]()
    for number, (*before, last) in enumerate(pipes):
        is_passive = last.is_filter or last.is_sure
        lost = (each for each in before if (is_passive and each.decides) or programs.judges(each.own, only_tests=True))
        hidden += ((command, PIPE, last.text) for command in lost)
        if _matters(number, pipes):
            matter.append(last)
        elif _constant(pipes[number]) is None:
            hidden.append((last, *_way(number, pipes)))
    others = any(command.decides for command in matter)
    awaited = any(way != BACKGROUND and command.decides for command, way, _ in hidden)
    return tuple(
        dict.fromkeys(
            Hidden(command.text, way, by)
            for command, way, by in hidden
            if programs.judges(command.own, only_tests=False)
            or (way == SEQUENCE and programs.has_trait(command.program, programs.COMPARE))
            or (command.decides and not others and not (way == BACKGROUND and awaited))  # a server, for the others
        )
    )


def why_sure(text: str) -> str:
    """Return why a check for `/bin/sh -c` passes whatever the work is; "" if it may fail, or its text does not show."""
    pipes = _pipes(text)
    if not pipes or "pipefail" in text:
        return ""
    last = pipes[-1][-1]
    writes = any(target.text != "/dev/null" for target in last.targets)
    runs_another = not last.own and not all(word.literal for word in last.words)  # A=$(make)
    if writes or runs_another or not all(state.succeeds for state in _ends(pipes)):
        return ""
    return f"`{_decider(pipes, fails=True)}` decides, and it always succeeds"


def _pipes(text: str, depth: int = 0) -> _Pipes:
    """Return the pipes of a check, joined by `&&`, `||`, `;` and `&`; none if it is not a flat list of them.

    A shell that runs a text, as in `bash -ec '…'`, is that text. So is a group that the check begins with.
    """
    for _ in range(shell.MOST_NESTED):
        text = shell.without_group(text.strip()) or text
    flat = shell.read(text).flat
    words = flat[0].own if len(flat) == 1 and not flat[0].negated else []
    if words and depth < shell.MOST_NESTED and (words[0] == "eval" or programs.has_trait(words[0], programs.SHELL)):
        inner, ends = shell.inner_script(words), any(re.fullmatch(r"-[a-z]*e[a-z]*", word) for word in words)
        return _pipes("set -e\n" * ends + inner, depth + 1) if inner is not None and "pipefail" not in text else ()
    if not flat or len(flat) > _MOST or flat[-1].after not in _ENDS or any(map(_is_opaque, flat)):
        return ()
    return [*_split(flat, (*_JOINS, *_ENDS))]


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
    last = next(reversed(shell.read(text).flat), None)
    if last is None or not last.negated or last.program not in _SEARCHES or "-e" in last.own:  # no text is a file then
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


def _after(state: _State, pipe: Sequence[Command], *, fails: bool) -> _State:
    """Return the state behind a pipe, if its last program fails or not; a pipe that does not run changes nothing."""
    last, succeeds, errexit, ended = pipe[-1], state.succeeds, state.errexit, state.ended
    if state.runs_next:
        fixed = _constant(pipe)
        succeeds = fails == last.negated if fixed is None else fixed
        errexit = _errexit(last, errexit=errexit)
        exits = last.program == "exit" or (errexit and not (succeeds or last.negated or last.after in _JOINS))
        ended = exits and last.after != "&"
    return _State(succeeds or (last.after == "&" and not ended), last.after, errexit, ended)


def _ends(pipes: _Pipes) -> set[_State]:
    """Return every state that can be behind the pipes, whichever of their programs fail."""
    states = {_State()}
    for pipe in pipes:
        states = {_after(state, pipe, fails=fails) for state in states for fails in (False, True)}
    return states


def _decider(pipes: _Pipes, *, fails: bool) -> str:
    """Return the command whose exit code the pipes have if all their programs fail, or none."""
    state, by = _State(), ""
    for pipe in pipes:
        by = pipe[-1].text if state.runs_next else by
        state = _after(state, pipe, fails=fails)
        by = "&" if state.joined == "&" else by
    return by


def _constant(pipe: Sequence[Command]) -> bool | None:
    """Return whether a pipe always succeeds, or never; None if its last program decides."""
    last = pipe[-1]
    if last.program in ("exit", "false"):
        return last.negated if last.program == "false" else last.own[1] == "0"
    return not last.negated if last.is_sure or _is_certain(last, is_piped=len(pipe) > 1) else None


def _matters(number: int, pipes: _Pipes) -> bool:
    """Return whether the pipes can end differently because the last program of one fails."""
    pairs = {tuple(_after(state, pipes[number], fails=f) for f in (False, True)) for state in _ends(pipes[:number])}
    for pipe in pipes[number + 1 :]:
        pairs = {tuple(_after(state, pipe, fails=f) for state in pair) for pair in pairs for f in (False, True)}
    return any(passed.succeeds != failed.succeeds for passed, failed in pairs)


def _way(number: int, pipes: _Pipes) -> tuple[str, str]:
    """Return how the exit code of a pipe is hidden, and by what."""
    begin = next((n + 1 for n in range(number - 1, -1, -1) if pipes[n][-1].after in _ENDS), 0)
    end = next(n for n in range(number, len(pipes)) if pipes[n][-1].after in _ENDS)
    if pipes[end][-1].after == "&":
        return BACKGROUND, ""
    later = [pipes[n + 1] for n in range(number, end) if pipes[n][-1].after == "||"]
    if not later or _matters(number - begin, pipes[begin : end + 1]):
        return SEQUENCE, _decider(pipes, fails=False)
    fallback = next((pipe for pipe in later if _constant(pipe)), later[0])
    return FALLBACK, " | ".join(" ".join(command.texts) for command in fallback)


def _errexit(command: Command, *, errexit: bool) -> bool:
    """Return whether a failure ends the script after this command."""
    words = command.own[1:] if command.program == "set" else []
    options = itertools.takewhile(lambda word: word not in ("-", "--"), words)  # arguments follow
    for option, value in itertools.pairwise((*options, "")):
        if option[:1] in "+-" and ("e" in option[1:] or (option.endswith("o") and value == "errexit")):
            errexit = option.startswith("-")
    return errexit


def _split(flat: Sequence[Command], after: Sequence[str]) -> Iterator[Sequence[Command]]:
    """Yield the parts that end with a command with one of these operators after it."""
    start = 0
    for number, command in enumerate(flat, 1):
        if command.after in after or number == len(flat):
            yield flat[start:number]
            start = number


_RAN = frozenset({
    "cancelled", "error", "errors", "fail", "failed", "failing", "pass", "passed", "passes", "passing", "rerun",
    "subtests passed", "xfailed", "xpassed",
})  # fmt: skip
_SKIPPED = frozenset({"ignored", "pending", "skipped", "todo"})
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
)
"""What test programs print at their end; text without counts says that no test ran. Few commands need the patterns."""
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
