"""What a simple command of a check is: a test program, a build, a filter, or set-up."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from idumb.lazy_dataclass import dataclass

# fmt: off
_TOOLS = frozenset({
    "ava", "ctest", "eslint", "flake8", "golangci-lint", "gradlew", "jasmine", "jest", "karma", "mocha", "mvnw",
    "mypy", "nox", "phpunit", "py.test", "pylint", "pyright", "pytest", "rspec", "ruff", "shellcheck", "tap", "tape",
    "tox", "tsc", "unittest", "vitest",
})
"""Programs that judge work."""
_BUILDERS = frozenset({"bazel", "gmake", "gradle", "just", "make", "mvn", "ninja", "rake"})
_SUBCOMMANDS = frozenset({
    ("bun", "test"), ("cargo", "build"), ("cargo", "check"), ("cargo", "clippy"), ("cargo", "nextest"),
    ("cargo", "test"), ("dotnet", "build"), ("dotnet", "test"), ("go", "build"), ("go", "test"), ("go", "vet"),
    ("npm", "run"), ("npm", "t"), ("npm", "test"), ("playwright", "test"), ("pnpm", "run"),
    ("pnpm", "test"),
    ("react-scripts", "test"), ("swift", "test"), ("yarn", "run"), ("yarn", "test"),
})
_TESTS = frozenset({"check", "t", "test", "tests", "unittest"})
_TEST_TOOLS = _TOOLS - {"eslint", "flake8", "golangci-lint", "gradlew", "mvnw", "mypy", "pylint", "pyright", "ruff",
                        "shellcheck", "tsc"}
_JUDGES = frozenset({"[", "[[", "cmp", "diff", "egrep", "fgrep", "grep", "rg", "test"})
_FILTERS = frozenset({
    "base64", "cat", "column", "cut", "fmt", "fold", "head", "iconv", "less", "more", "nl", "od", "rev", "sed", "sort",
    "strings", "tac", "tail", "tee", "tr", "ts", "uniq", "wc", "xxd",
})
"""Programs that succeed whatever they read."""
_SURE = frozenset({":", "echo", "printf", "seq", "sleep", "true", "yes"})
_SETUP = frozenset({
    ".", "alias", "cd", "chmod", "command", "cp", "declare", "export", "kill", "killall", "ln", "local", "ls", "mkdir",
    "mv", "pkill", "popd", "pushd", "pwd", "read", "readonly", "rm", "rmdir", "set", "shopt", "source", "stty", "touch",
    "ulimit", "umask", "unset", "wait",
})
_PREFIXES = frozenset({"command", "env", "exec", "nice", "nohup", "stdbuf", "sudo", "time", "timeout", "xvfb-run"})
_RUNS_NOTHING = frozenset({
    "--co", "--collect-only", "--dry-run", "--help", "--list", "--listTests", "--version", "-V", "-h",
})
# fmt: on


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """A simple command: its words, without assignments and prefixes such as `timeout 60`."""

    words: tuple[str, ...]

    @property
    def program(self) -> str:
        return self.words[0].rpartition("/")[2] if self.words else ""

    @property
    def text(self) -> str:
        return " ".join(self.words)

    @property
    def is_filter(self) -> bool:
        """Whether it succeeds whatever it reads."""
        return self.program in _FILTERS or (self.program == "awk" and not any("exit" in w for w in self.words[1:]))

    @property
    def is_sure(self) -> bool:
        """Whether it never fails."""
        return self.program in _SURE or not self.words

    @property
    def compares(self) -> bool:
        """Whether it judges text or files, such as `grep` and `test`."""
        return self.program in _JUDGES

    @property
    def is_tool(self) -> bool:
        """Whether it tests, checks or builds a project."""
        return self._is_among(_TOOLS, builds=True)

    @property
    def tests(self) -> bool:
        """Whether it runs tests of a project."""
        return self._is_among(_TEST_TOOLS, builds=False)

    @property
    def decides(self) -> bool:
        """Whether the author of a check would expect it to fail."""
        return not (self.is_filter or self.program in _SETUP or self.is_sure)

    def _is_among(self, tools: frozenset[str], *, builds: bool) -> bool:
        names = [word.rpartition("/")[2] for word in self.words]
        if not _RUNS_NOTHING.isdisjoint(names) or self.compares or self.is_filter or not self.decides:
            return False
        pairs = {pair for pair in itertools.pairwise(names) if pair in _SUBCOMMANDS}
        if self.program in {"pip", "pip3", "which", "type", "man"} or {"install", "add"} & set(names[1:3]):
            return False
        makes = self.program in _BUILDERS and "-n" not in names and (builds or not _TESTS.isdisjoint(names))
        tests = {pair for pair in pairs if builds or pair[1] in _TESTS or not _TESTS.isdisjoint(names)}
        return not tools.isdisjoint(names) or makes or bool(tests) or ("node" in names and "--test" in names)


def without_prefixes(words: Sequence[str]) -> list[str]:
    """Return the words of a command without assignments, and without `env`, `timeout 60` and similar."""
    rest = list(words)
    while rest:
        if "=" in rest[0] and rest[0].partition("=")[0].isidentifier():
            rest.pop(0)
        elif rest[:2] in (["command", "-v"], ["command", "-V"]):
            return rest[:1]
        elif rest[0].rpartition("/")[2] in _PREFIXES:
            rest.pop(0)
            while rest and (rest[0].startswith("-") or rest[0].rstrip("smh").replace(".", "").isdigit()):
                rest.pop(0)
        else:
            break
    return rest
