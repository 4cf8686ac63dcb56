"""Checks that prove nothing: the shell hides a failure, nothing in them can fail, or they ran no test.

The first two are read from the text, as lists of pipes: `a | b`, `a || b`, `a; b`, `a & b`. There is no answer for text
that decides by itself, such as `if`, loops, groups, functions, `trap` and `$?`. Test programs and builds are reported
always, others only if nothing else in the check can fail.

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

from idumb.domain.plans import commands, programs
from idumb.domain.plans.commands import Command

PIPE, FALLBACK, SEQUENCE, BACKGROUND = "pipe", "fallback", "sequence", "background"
_MOST = 20  # commands of a check that is judged; the time grows with their cube
_OPAQUE = frozenset({"break", "continue", "eval", "function", "return", "trap"})
_JOINS = ("&&", "||")
_ENDS = (";", "&", "\n", "")

_Pipes = Sequence[Sequence[Command]]
_Failing = frozenset[int]
"""The failing commands, by `id`: two of them may be equal."""


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
        if _matters(last, pipes):
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
            or (way == SEQUENCE and programs.does(command.program, programs.COMPARE))
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
    if writes or runs_another or not all(_run(pipes, failing)[0] for failing in _outcomes(pipes)):
        return ""
    return f"`{_run(pipes, frozenset(id(pipe[-1]) for pipe in pipes))[1]}` decides, and it always succeeds"


def _pipes(text: str) -> _Pipes:
    """Return the pipes of a check, joined by `&&`, `||`, `;` and `&`; none if it is not a flat list of them."""
    flat = commands.read(text).flat
    if not flat or len(flat) > _MOST or flat[-1].after not in _ENDS or any(map(_is_opaque, flat)):
        return ()
    return [*_split(flat, (*_JOINS, *_ENDS))]


_COMPARES_WORDS = frozenset({"-n", "-z", "=", "!=", "==", "-eq", "-ne", "-gt", "-ge", "-lt", "-le"})
_SEARCHES = frozenset({"grep", "egrep", "fgrep"})


def _is_certain(command: Command, *, is_piped: bool) -> bool:
    """Whether a command always ends in one way: it passes on what it reads, compares fixed words, or finds nothing."""
    if command.program in ("test", "["):
        asked = [word for word in command.words[1:] if word.text != "]"]
        fixed = (word.literal and (word.text[:1] != "-" or word.text in _COMPARES_WORDS) for word in asked)
        return bool(asked) and all(fixed)
    if command.program in _SEARCHES and "" in command.own:  # in every line
        return not command.negated and not any(word.startswith("-") and "v" in word for word in command.own[1:])
    return is_piped and command.is_filter


def must_lack(text: str) -> tuple[str, ...]:
    """Return the files in which a check wants to find nothing, as in `! grep -q x FILE`: without them, it passes."""
    last = next(reversed(commands.read(text).flat), None)
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


def _run(pipes: _Pipes, failing: _Failing) -> tuple[bool, str]:
    """Return whether the pipes succeed if exactly these commands fail, and the command whose exit code that is."""
    succeeds, by, errexit, joined = True, "", False, ";"
    for pipe in pipes:
        last = pipe[-1]
        if joined not in _JOINS or (joined == "&&") == succeeds:
            fixed, by = _constant(pipe), last.text
            succeeds = (id(last) in failing) == last.negated if fixed is None else fixed
            errexit = _errexit(last, errexit=errexit)
            if last.program == "exit" or (errexit and not succeeds and last.after not in (*_JOINS, "&")):
                return succeeds, by
        if last.after == "&":
            succeeds, by = True, "&"
        joined = last.after
    return succeeds, by


def _constant(pipe: Sequence[Command]) -> bool | None:
    """Return whether a pipe always succeeds, or never; None if its last program decides."""
    last = pipe[-1]
    if last.program in ("exit", "false"):
        return last.negated if last.program == "false" else last.own[1] == "0"
    return not last.negated if last.is_sure or _is_certain(last, is_piped=len(pipe) > 1) else None


def _outcomes(pipes: _Pipes) -> Iterator[_Failing]:
    """Yield which commands may fail: none, all, one, or all but one."""
    last = frozenset(id(pipe[-1]) for pipe in pipes)
    yield from (frozenset(), last)
    yield from (some for each in last for some in (frozenset({each}), last - {each}))


def _matters(command: Command, pipes: _Pipes) -> bool:
    """Return whether the pipes can end differently because a command fails."""
    own = frozenset({id(command)})
    return any(_run(pipes, failing - own)[0] != _run(pipes, failing | own)[0] for failing in _outcomes(pipes))


def _way(number: int, pipes: _Pipes) -> tuple[str, str]:
    """Return how the exit code of a pipe is hidden, and by what."""
    begin = next((n + 1 for n in range(number - 1, -1, -1) if pipes[n][-1].after in _ENDS), 0)
    end = next(n for n in range(number, len(pipes)) if pipes[n][-1].after in _ENDS)
    if pipes[end][-1].after == "&":
        return BACKGROUND, ""
    if _matters(pipes[number][-1], pipes[begin : end + 1]):
        return SEQUENCE, _run(pipes, frozenset())[1]
    fallback = next((pipes[n + 1] for n in range(number, end) if pipes[n][-1].after == "||"), pipes[end])
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
    (
        "vitest",
        r"^ *Tests  +(?:no tests|(?:\d+ [a-z ]+?(?: \| )?)+ \(\d+\))$|^No test files found, exiting with .*$",
    ),
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
    if not any(_may_run_tests(part.own) for part in commands.read(command).commands):
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
    if programs.judges(words, only_tests=True) or programs.does(name, programs.BUILD, programs.STARTS):
        return True
    if programs.does(name, programs.SHELL, programs.INTERPRETER):
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
