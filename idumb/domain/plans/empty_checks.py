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
_MOST = 500
_OPAQUE = frozenset({"break", "continue", "eval", "function", "return", "trap"})


class Hidden(Struct, frozen=True):
    """A program whose failure the check hides. `way` says how, `by` is the command whose exit code counts instead."""

    command: str
    way: str
    by: str


class _Status(Struct, frozen=True):
    """How a part can end: `decisive` commands make it fail if they fail, `fatal` ones end the script.

    `hidden` are commands, how each is hidden and by what. `constant` is its exit code if that never varies, `last` the
    command whose exit code it has.
    """

    decisive: tuple[Command, ...] = ()
    fatal: tuple[Command, ...] = ()
    hidden: tuple[tuple[Command, str, str], ...] = ()
    constant: bool | None = None
    exits: bool = False
    last: str = ""


@functools.lru_cache(maxsize=1024)
def hidden_failures(text: str) -> tuple[Hidden, ...]:
    """Return the programs whose failure a check for `/bin/sh -c` hides; none if that cannot be read from its text."""
    flat = commands.read(text).flat
    if len(flat) > _MOST or not any(command.after for command in flat) or any(map(_is_opaque, flat)):
        return ()
    status = _sequence(flat)
    if status is None:
        return ()
    others = [command for command in (*status.decisive, *status.fatal) if command.decides]
    awaited = [command for command, way, _ in status.hidden if way != BACKGROUND and command.decides]
    return tuple(
        dict.fromkeys(
            Hidden(command.text, way, by)
            for command, way, by in status.hidden
            if programs.judges(command.own, only_tests=False)
            or (way == SEQUENCE and programs.does(command.program, programs.COMPARE))
            or (command.decides and not others and not (way == BACKGROUND and awaited))  # a server, for the others
        )
    )


def why_sure(text: str) -> str:
    """Return why a check for `/bin/sh -c` passes whatever the work is; "" if it may fail, or its text does not show."""
    flat = commands.read(text).flat
    if not flat or len(flat) > _MOST or any(map(_is_opaque, flat)) or "pipefail" in text:
        return ""
    status, last = _sequence(flat), flat[-1]
    writes = any(target.text != "/dev/null" for target in last.targets)
    runs_another = not last.own and not all(word.literal for word in last.words)  # A=$(make)
    if status is None or status.fatal or writes or runs_another or status.constant is not True:
        return ""
    return f"`{status.last}` decides, and it always succeeds"


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


def _sequence(flat: Sequence[Command]) -> _Status | None:
    status, errexit = _Status(constant=True), False
    for part in _split(flat, (";", "&", "\n")):
        one = _list(part)
        if one is None or status.exits:
            return None
        for command in part:
            errexit = _errexit(command, errexit=errexit)
        if part[-1].after == "&":
            lost = tuple((command, BACKGROUND, "") for command in (*one.decisive, *one.fatal))
            one = _Status(hidden=(*one.hidden, *lost), constant=True, last="&")
        fatal = (*status.fatal, *one.fatal, *(one.decisive if errexit else ()))
        lost = tuple((command, SEQUENCE, one.last) for command in status.decisive if command not in status.fatal)
        hidden = (*status.hidden, *lost, *one.hidden)
        status = _Status(one.decisive, fatal, hidden, one.constant, one.exits, one.last)
    return status


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


def _list(part: Sequence[Command]) -> _Status | None:
    """Return the status of pipes that `&&` and `||` join."""
    status, operator = _Status(constant=True), "&&"
    for pipe in _split(part, ("&&", "||")):
        right = _pipe(pipe)
        if operator == "&&":
            if right.exits and right.constant and status.decisive:
                return None  # `… && exit 0` leaves the rest to the commands below
            status = _both(status, right)
        else:
            status = _either(status, right, " | ".join(" ".join(command.texts) for command in pipe))
        operator = pipe[-1].after
    return status if operator not in ("&&", "||") else None


def _both(left: _Status, right: _Status) -> _Status:
    constant = right.constant if left.constant or right.constant is False else left.constant
    return _Status(
        (*left.decisive, *right.decisive),
        (*left.fatal, *right.fatal),
        (*left.hidden, *right.hidden),
        constant,
        right.exits and left.constant is True,
        right.last,
    )


def _either(left: _Status, right: _Status, fallback: str) -> _Status:
    fatal, hidden = (*left.fatal, *right.fatal), (*left.hidden, *right.hidden)
    if right.constant is True:
        lost = tuple((command, FALLBACK, fallback) for command in left.decisive)
        return _Status((), fatal, (*hidden, *lost), constant=True, last=right.last)
    if right.constant is False:
        more = left.decisive if right.exits else ()
        return _Status(left.decisive, (*fatal, *more), hidden, left.constant, last=left.last)
    return _Status((*left.decisive, *right.decisive), fatal, hidden, last=right.last)


def _pipe(pipe: Sequence[Command]) -> _Status:
    """Return the status of a pipe, which has the exit code of its last command."""
    last = pipe[-1]
    by = last.text
    passive = last.is_filter or last.is_sure
    lost = tuple(
        (command, PIPE, by)
        for command in pipe[:-1]
        if (passive and command.decides) or programs.judges(command.own, only_tests=True)
    )
    if last.program == "exit":
        return _Status(hidden=lost, constant=last.own[1] == "0", exits=True, last=by)
    if last.program == "false" or last.is_sure:
        return _Status(hidden=lost, constant=(last.program != "false") != last.negated, last=by)
    constant = not last.negated if _is_certain(last, is_piped=len(pipe) > 1) else None
    return _Status((last,), hidden=lost, constant=constant, last=by)


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
