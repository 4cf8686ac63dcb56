"""Whether a check that exited with 0 ran any test, read from its command and from the summaries that it printed.

It judges only commands that name a test program, or a program that starts one, such as `make` and `npm`. Output
without a summary is not judged. If one test program of several ran a test, the check ran tests.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from idumb import lazy_pattern
from idumb.domain.plans import commands, programs
from idumb.lazy_dataclass import dataclass

_RAN = frozenset({
    "cancelled", "error", "errors", "fail", "failed", "failing", "failures", "measured", "pass", "passed", "passes",
    "passing", "rerun", "subtests passed", "xfailed", "xpassed",
})  # fmt: skip
_SKIPPED = frozenset({"ignored", "pending", "skipped", "todo"})
_TEST_LIKE = lazy_pattern.compile(r"test|spec|check|verify|(?:^|/)ci(?:\W|$)", re.IGNORECASE)
_NO_GO_TEST = lazy_pattern.compile(r"-(?:test\.)?run[= ]['\"]?(?:\^\$|XXX|NONE|none|\^NONE|-)(?:['\"]|\s|$)")
_TEXT_OPTION = lazy_pattern.compile(r"-[a-z]*[ce]")
_COLOURS = lazy_pattern.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


_BUILDS = {"go test": "go build ./...", "cargo test": "cargo build"}


@dataclass(frozen=True, slots=True)
class NoTests:
    """`tool` is the test program, `words` what it did and the fix, as a sentence in lower case."""

    tool: str
    words: str


@dataclass(frozen=True, slots=True)
class _Summary:
    """One summary of a test program: the tests that ran, and those that it skipped or only listed."""

    tool: str
    ran: int
    skipped: int = 0


_Reader = Callable[[str], Iterator[_Summary]]


def find(command: str, output: str, *, truncated: bool = False) -> NoTests | None:
    """Return why a check that passed ran no test; None if it ran one, or if its output does not tell.

    `truncated` output lacks its middle, so only a single test program is judged that prints one summary, at the end.
    """
    readers, alone = _readers(command)
    if not readers or (truncated and not (alone and readers[0] in _ENDS_WITH_SUMMARY)):
        return None
    text = _COLOURS.sub("", output)
    summaries = [summary for reader in readers for summary in reader(text)]
    if not summaries or any(summary.ran for summary in summaries):
        return None
    skipped = max(summaries, key=lambda summary: summary.skipped)
    return NoTests(skipped.tool, _words(skipped))


def _words(summary: _Summary) -> str:
    if not summary.skipped:
        fix = "Add a test that it finds, or name the files of the tests in the command"
        if summary.tool in _BUILDS:
            fix = f"Add a test that it finds; to prove only a build, write `{_BUILDS[summary.tool]}`"
        return f"{summary.tool} ran no test, so the check proves nothing. {fix}"
    tests = "the only test" if summary.skipped == 1 else f"all {summary.skipped} tests"
    fix = "Remove the skip, or provide what the tests need"
    return f"{summary.tool} skipped {tests}, so the check proves nothing. {fix}"


def _readers(command: str) -> tuple[tuple[_Reader, ...], bool]:
    """Return the readers of the summaries that a command may print, and whether it is one test program alone."""
    readers: dict[_Reader, None] = {}
    simple = commands.read(command).commands
    for part in simple:
        readers.update(dict.fromkeys(_readers_of(part.own)))
    return tuple(readers), len(simple) == 1 and len(readers) == 1


def _readers_of(texts: Sequence[str]) -> Iterator[_Reader]:
    """Yield the readers of the summaries that a simple command may print."""
    names = [text.rpartition("/")[2] for text in texts]
    shows = names and programs.does(names[0], programs.COMPARE, programs.SHOW, programs.FILTER, programs.SURE)
    if not names or shows or programs.runs_nothing(texts):
        return
    pairs = set(itertools.pairwise(names))
    for name in names:
        if name in _BY_NAME:
            yield _BY_NAME[name]
    if _is_cargo_test([name for name in names if not name.startswith("+")]):
        yield _cargo
    if ("go", "test") in pairs and not _NO_GO_TEST.search(" ".join(texts)):
        yield _go
    if ("react-scripts", "test") in pairs or ("craco", "test") in pairs:
        yield _jest
    if "--test" in texts and any(programs.does(name, programs.INTERPRETER) for name in names):
        yield _tap
    yield from _started_by(texts, names)


def _is_cargo_test(names: Sequence[str]) -> bool:
    return any(
        one in ("cargo", "cross") and two in ("test", "t", "nextest", "llvm-cov")
        for one, two in itertools.pairwise(names)
    )


def _started_by(texts: Sequence[str], names: Sequence[str]) -> Iterator[_Reader]:
    """Yield the readers for what a launcher, a script of tests or an interpreter with one starts."""
    script = next((text for text in texts[1:] if not text.startswith("-")), "")
    if programs.does(names[0], programs.BUILD, programs.STARTS) or names[0] in programs.DEFINITIONS:
        yield from _ALL
    elif any(_TEXT_OPTION.fullmatch(text) for text in texts[1:2]):
        return  # the script is in the command; a shell's is read on its own
    elif (is_shell := programs.does(names[0], programs.SHELL)) or "/" in texts[0]:
        if _TEST_LIKE.search(script if is_shell else texts[0]):
            yield from _ALL
    elif names[0].startswith("python") and script.endswith(".py"):
        if _TEST_LIKE.search(script) or (names[1] == "manage.py" and "test" in names):
            yield from (_unittest, _pytest)
    elif programs.does(names[0], programs.INTERPRETER) and _TEST_LIKE.search(script):
        yield _tap


_COUNTS = lazy_pattern.compile(r'(\d+) ((?:subtests )?[a-z]+)|\b([a-z]+)"?:? +(\d+)')


def _counted(tool: str, text: str) -> _Summary:
    """Return the counts that a text names: `1 passed, 2 skipped`, `# pass 1`, `"passes": 1`."""
    pairs = [(word or other, int(number or value)) for number, word, other, value in _COUNTS.findall(text)]
    ran, skipped = (sum(number for word, number in pairs if word in words) for words in (_RAN, _SKIPPED))
    return _Summary(tool, ran, skipped)


def _reader(tool: str, *patterns: str) -> _Reader:
    """Return what counts in each text of these patterns; one without numbers says that no test ran."""
    compiled = [lazy_pattern.compile(pattern, re.MULTILINE) for pattern in patterns]
    return lambda text: (_counted(tool, match[0]) for pattern in compiled for match in pattern.finditer(text))


_PYTEST_END = lazy_pattern.compile(
    r"^=*[ ]?(?P<counts>no tests ran|no tests collected[^=\n]*|\d+(?:/\d+)? tests? collected[^=\n]*"
    r"|\d+ [a-z]+(?: [a-z]+)?(?:, \d+ [a-z]+(?: [a-z]+)?)*)"
    r" in \d+(?:\.\d+)? ?s(?:econds)?(?: \([\d:]+\))?[ ]?=*$",
    re.MULTILINE,
)
_PYTEST_WORDS = lazy_pattern.compile(r"\d+ (?:subtests )?([a-z]+)")
_PYTEST_OTHERS = frozenset({"deselected", "warning", "warnings", "test", "tests"})
_PYTEST_PROGRESS = lazy_pattern.compile(r"^([.sxXFER]+) +\[ *\d+%\]$", re.MULTILINE)


def _pytest(text: str) -> Iterator[_Summary]:
    """Read `1 passed, 1 skipped in 0.02s`; below `-qq` there is only the progress, as in `s.  [100%]`."""
    ends = [match["counts"] for match in _PYTEST_END.finditer(text)]
    ends = [counts for counts in ends if set(_PYTEST_WORDS.findall(counts)) <= _RAN | _SKIPPED | _PYTEST_OTHERS]
    yield from (_counted("pytest", counts) for counts in ends)
    progress = "" if ends else "".join(_PYTEST_PROGRESS.findall(text))
    if progress:
        skipped = progress.count("s")
        yield _Summary("pytest", len(progress) - skipped, skipped)


_UNITTEST_END = lazy_pattern.compile(
    r"^Ran (\d+) tests? in [\d.]+s\n\s*(?:OK|NO TESTS RAN|FAILED)(?: \(([^)\n]*)\))?$", re.MULTILINE
)


def _unittest(text: str) -> Iterator[_Summary]:
    start = 0
    for match in _UNITTEST_END.finditer(text):
        ran = int(match[1])
        skipped = next((int(n) for n in re.findall(r"skipped=(\d+)", match[2] or "")), 0)
        if ran and (skipped < ran or not _all_skipped(text[start : match.start()], skipped)):
            yield _Summary("unittest", ran)
        else:
            yield _Summary("unittest", 0, skipped)
        start = match.end()


def _all_skipped(before: str, skipped: int) -> bool:
    """Whether the progress shows only skips: versions disagree whether "Ran N tests" counts skipped ones."""
    lines = sum(len(line) for line in re.findall(r"^s+$", before, re.MULTILINE))
    verbose = len(re.findall(r"\.\.\. skipped ", before))
    done = re.search(r"\.\.\. (?:ok|expected failure|FAIL|ERROR)$", before, re.MULTILINE)
    return skipped in {lines, verbose} and done is None


_TAP_END = lazy_pattern.compile(
    r"^(?:#|\N{INFORMATION SOURCE}) tests \d+\n(?:(?:#|\N{INFORMATION SOURCE}) \w+ +[\d.]+\n?)+", re.MULTILINE
)


def _tap(text: str) -> Iterator[_Summary]:
    """Read the counts at the end of `node --test`, of tape, and of mocha's TAP."""
    for match in _TAP_END.finditer(text):
        if " pass " in match[0]:
            yield _counted("node --test" if " suites " in match[0] else "the test program", match[0])


_MOCHA = _reader(
    "mocha",
    r"^ +\d+ passing(?: \([^)\n]*\))?$(?:\n+ +\d+ (?:pending|failing)$)*",
    r'"stats": \{[^}]*"passes": \d+,[^}]*',
)


def _mocha(text: str) -> Iterator[_Summary]:
    yield from _MOCHA(text)
    yield from (_Summary("mocha", summary.ran, summary.skipped) for summary in _tap(text))


_jest = _reader("jest", r"^Tests: +(?:\d+ [a-z]+, )*\d+ total$", r"^No tests found, exiting with code 0$")
_vitest = _reader(
    "vitest",
    r"^ *Tests  +(?:no tests|(?:\d+ [a-z ]+?(?: \| )?)+ \(\d+\))$",
    r"^No test files found, exiting with code 0$",
)


_GO_PACKAGE = lazy_pattern.compile(r"^ok +\t?\S+\t(?:\(cached\)|[\d.]+s)(.*)$", re.MULTILINE)
_GO_EMPTY = lazy_pattern.compile(
    r"^\?[ ]+\t\S+\t\[no test files\]$|^\t\S+\t\tcoverage: 0\.0% of statements$", re.MULTILINE
)
_GO_TEST = lazy_pattern.compile(r"^--- (PASS|FAIL|SKIP): |^(Benchmark)\S*\s+\d", re.MULTILINE)
_GO_DONE = lazy_pattern.compile(r"^DONE (?:\d+ runs, )?(\d+) tests?(?:, (\d+) skipped)?", re.MULTILINE)


def _go(text: str) -> Iterator[_Summary]:
    """Read a line per package; only `-v` prints the tests, and so shows that all of them were skipped."""
    tests = [first or second for first, second in _GO_TEST.findall(text)]
    skipped = tests.count("SKIP")
    for end in _GO_PACKAGE.findall(text):
        ran = 0 if "[no tests to run]" in end or (tests and skipped == len(tests)) else 1
        yield _Summary("go test", ran, skipped)
    for _ in _GO_EMPTY.findall(text):
        yield _Summary("go test", 0)
    for total, without in _GO_DONE.findall(text):
        yield _Summary("go test", int(total) - int(without or 0), int(without or 0))


_CARGO = _reader(
    "cargo test", r"^test result: \w+\. \d+ passed; .*measured;", r"^ +Summary \[.*?\] +\d+ tests? run:.*$"
)
_CARGO_START = lazy_pattern.compile(r"^running \d+ tests?$|^ +(?:Running|Doc-tests) ", re.MULTILINE)
_CARGO_LINE = lazy_pattern.compile(
    r"running \d+ tests?$|test result: | +(?:Running|Doc-tests) |test .*\.\.\. ignored|i+$|\s*$|warning: |all doctests "
)


def _cargo(text: str) -> Iterator[_Summary]:
    """Read one result per test binary and doc-tests; binaries with a test harness of their own print anything."""
    yield from _CARGO(text)
    start, ends = _CARGO_START.search(text), text.count("\ntest result: ")
    if start and ends:
        lines = text[start.start() : text.rfind("test result: ")].split("\n")
        headers = sum(line.lstrip().startswith(("Running ", "Doc-tests ")) for line in lines)
        if headers > ends or not all(_CARGO_LINE.match(line) for line in lines):
            yield _Summary("cargo test", 1)


_BY_NAME: Mapping[str, _Reader] = {
    "pytest": _pytest,
    "py.test": _pytest,
    "unittest": _unittest,
    "mocha": _mocha,
    "_mocha": _mocha,
    "jest": _jest,
    "vitest": _vitest,
    "gotestsum": _go,
    "tape": _tap,
}
_ALL: tuple[_Reader, ...] = (_pytest, _unittest, _mocha, _jest, _vitest, _go, _cargo)
_ENDS_WITH_SUMMARY = frozenset({_pytest, _unittest, _tap, _mocha, _jest, _vitest})
