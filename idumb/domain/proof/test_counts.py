"""Whether a check that exited with 0 ran any test, read from its command and from the summaries that it printed.

It judges only commands that name a test program, or a program that starts one, such as `make` and `npm`. Output
without a summary is not judged. If one test program of several ran a test, the check ran tests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from idumb.domain.plans import commands, programs

_RAN = frozenset({
    "cancelled", "error", "errors", "fail", "failed", "failing", "pass", "passed", "passes", "passing", "rerun",
    "subtests passed", "xfailed", "xpassed",
})  # fmt: skip
_SKIPPED = frozenset({"ignored", "pending", "skipped", "todo"})
_TEST_LIKE = re.compile(r"test|spec|check|verify|(?:^|/)ci(?:\W|$)", re.IGNORECASE)
_NO_GO_TEST = re.compile(r"-run[= ]['\"]?(?:\^\$|XXX|NONE|none)(?:['\"]|\s|$)")
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
_BUILDS = {"go test": "go build ./...", "cargo test": "cargo build"}

_PYTEST_WORDS = r"(?:subtests )?(?:passed|failed|errors?|skipped|xfailed|xpassed|rerun|deselected|warnings?)"
_PYTEST = (
    r"^=*[ ]?(?:no tests (?:ran|collected)[^=\n]*|\d+(?:/\d+)? tests? collected[^=\n]*"
    rf"|\d+ {_PYTEST_WORDS}(?:, \d+ {_PYTEST_WORDS})*) in [\d.]+ ?s(?:econds)?(?: \([\d:]+\))?[ ]?=*$"
)
_TAP = r"[#\u2139] \w+ +[\d.]+"
_SUMMARIES = tuple(
    (tool, re.compile(pattern, re.MULTILINE))
    for tool, pattern in (
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
)
"""What test programs print at their end; text without counts says that no test ran."""
_COUNTS = re.compile(r"(\d+) ((?:subtests )?[a-z]+)|\b([a-z]+) +(\d+)")
_UNITTEST = re.compile(r"^Ran (\d+) tests? in [\d.]+s\n\s*(?:OK|NO TESTS RAN)(?: \((.*)\))?$", re.MULTILINE)
_UNITTEST_SKIPS = re.compile(r"^s+$|\.\.\. skipped ", re.MULTILINE)
_UNITTEST_RUNS = re.compile(r"^s*[.x][.sx]*$|\.\.\. (?:ok|expected failure)$", re.MULTILINE)
_GO_RAN = re.compile(r"^ok +\t?\S+\t(?!.*\[no tests to run\]$)", re.MULTILINE)
_CARGO_BINARY = re.compile(r"^ +(?:Running|Doc-tests) ", re.MULTILINE)
_CARGO = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored; .*$", re.MULTILINE)


class _Summary(NamedTuple):
    """One summary of a test program: the tests that ran, and those that it skipped."""

    tool: str
    ran: int
    skipped: int = 0


def find(command: str, output: str) -> str:
    """Return why a check that passed ran no test, with the fix; "" if it ran one, or if its output does not tell."""
    if not any(_may_run_tests(part.own) for part in commands.read(command).commands):
        return ""
    summaries = [*_summaries(_COLOURS.sub("", output))]
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
    if not words or programs.runs_nothing(words) or _NO_GO_TEST.search(" ".join(words)):
        return False
    name = words[0].rpartition("/")[2]
    if programs.judges(words, only_tests=True) or programs.does(name, programs.BUILD, programs.STARTS):
        return True
    if programs.does(name, programs.SHELL, programs.INTERPRETER):
        is_text = any(word.startswith("-") and word[-1] in "ce" for word in words[1:2])
        return not is_text and any(_TEST_LIKE.search(word) for word in words[1:3])
    return "/" in words[0] and _TEST_LIKE.search(words[0]) is not None


def _summaries(text: str) -> Iterator[_Summary]:
    for tool, pattern in _SUMMARIES:
        for match in pattern.finditer(text):
            pairs = [(word or other, int(number or count)) for number, word, other, count in _COUNTS.findall(match[0])]
            ran, skipped = (sum(number for word, number in pairs if word in words) for words in (_RAN, _SKIPPED))
            yield _Summary(tool, ran, skipped)
    yield from _of_unittest(text)
    yield from (_Summary("go test", 1) for _ in _GO_RAN.findall(text))
    results = _CARGO.findall(text)
    if 0 < len(_CARGO_BINARY.findall(text)) <= len(results):  # else a binary has a test harness of its own
        yield from (_Summary("cargo test", int(passed) + int(failed), int(skips)) for passed, failed, skips in results)


def _of_unittest(text: str) -> Iterator[_Summary]:
    """Yield each result. Versions disagree whether "Ran N tests" counts skipped tests, so their progress tells."""
    start = 0
    for match in _UNITTEST.finditer(text):
        before, start = text[start : match.start()], match.end()
        skips = re.search(r"skipped=(\d+)", match[2] or "")
        skipped = int(skips[1]) if skips else 0
        all_skipped = _UNITTEST_SKIPS.search(before) is not None and _UNITTEST_RUNS.search(before) is None
        yield _Summary("unittest", 0 if skipped and all_skipped else int(match[1]), skipped)
