"""What programs do, by name: the one table for everything that reads the commands of a plan."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

TEST = "test"
"""Runs tests of a project."""
JUDGE = "judge"
"""Judges the source of a project."""
BUILD = "build"
"""Runs targets that a file of the project defines."""
STARTS = "starts"
"""Starts what the project, its packages or a container have installed."""
COMPARE = "compare"
"""Judges text or files."""
SHOW = "show"
"""Shows text or files, and judges none."""
FILTER = "filter"
"""Succeeds whatever it reads."""
SURE = "sure"
"""Never fails."""
ARRANGE = "arrange"
"""Arranges files, processes or the shell itself for what follows."""
LAUNCHER = "launcher"
"""Its first argument, after options and times, is the program."""
SHELL = "shell"
INTERPRETER = "interpreter"
NETWORK = "network"
CLOCK = "clock"
WRITE = "write"
"""Writes every path that it is given, or (COPY) the last one."""
COPY = "copy"
PATTERN = "pattern"
"""Its first operand is a pattern, the text of a program or that of a link."""
RANDOM = "random"
BUILTIN = "builtin"

# fmt: off
_TABLE: Mapping[str, str] = {
    TEST: "_mocha ava bats ctest gotestsum jasmine jest karma mocha nox phpunit prove py.test pytest rspec tap tape tox"
          " unittest vitest",
    JUDGE: "eslint flake8 golangci-lint mypy pylint pyright ruff shellcheck tsc",
    BUILD: "bazel gmake gradle gradlew just make mvn mvnw ninja rake",
    STARTS: "ant bun bunx coverage docker docker-compose doit hatch inv invoke lerna moon npm npx nx nyc pdm pipenv"
            " pixi pnpm podman poe poetry rye task turbo uv yarn",
    COMPARE: "[ [[ ack ag cmp diff egrep fgrep grep rg test",
    SHOW: "awk find gawk git jq ls man stat type which",
    FILTER: "base64 cat column cut fmt fold head iconv less more nl od rev sed sort strings tac tail tee tr ts uniq wc"
            " xxd",
    SURE: ": echo printf seq sleep true yes",
    ARRANGE: ". alias cd chmod command cp declare export kill killall ln local ls mkdir mv pkill popd pushd pwd read"
             " readonly rm rmdir set shopt source stty touch ulimit umask unset wait",
    LAUNCHER: "busybox command env exec ionice nice nohup setsid stdbuf sudo time timeout watch xargs xvfb-run",
    SHELL: "bash dash ksh sh zsh",
    INTERPRETER: "bun deno lua node perl php python python2 python3 Rscript ruby ts-node tsx",
    NETWORK: "aria2c aws bunx curl dig ftp gcloud gh gsutil kubectl nc ncat netcat npx nslookup ping pipx pnpx scp sftp"
             " ssh telnet uvx wget whois",
    WRITE: "chmod chown mkdir mv rm rmdir tee touch truncate",
    COPY: "cp install ln rsync",
    PATTERN: "ack ag awk egrep fgrep gawk grep jq ln perl rg sed",
    CLOCK: "date",
    RANDOM: "mktemp uuidgen",
    BUILTIN: ". : [ [[ alias bg break builtin cd command continue declare echo eval exec exit export false fg getopts"
             " hash jobs kill let local popd printf pushd pwd read readonly return set shift source test time times"
             " trap true type typeset ulimit umask unalias unset wait",
}
DEFINITIONS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("make", "gmake"), ("Makefile", "makefile", "GNUmakefile")),
    **dict.fromkeys(("npm", "pnpm", "yarn"), ("package.json",)), **dict.fromkeys(("inv", "invoke"), ("tasks.py",)),
    "just": ("justfile", "Justfile", ".justfile"), "task": ("Taskfile.yml", "Taskfile.yaml"), "tox": ("tox.ini",),
    "nox": ("noxfile.py",), "rake": ("Rakefile",),
}
"""Programs whose targets a file of the project defines."""
_FETCHES: Mapping[str, str] = {
    "git": "clone fetch ls-remote pull push", "svn": "checkout co export up update", "hg": "clone pull push",
    "npm": "add ci create exec i install update", "pnpm": "add create dlx i install update",
    "conda": "create install update", "docker-compose": "pull", "pdm": "add install lock sync update",
    "yarn": "add dlx install", "bun": "add install x", "pip": "download install",
    "pipenv": "install sync", "poetry": "add install lock update", "uv": "add lock pip sync", "playwright": "install",
    "cargo": "add fetch install update",
    "go": "get install", "gem": "install", "bundle": "install update", "composer": "install require update",
    "docker": "pull push login", "podman": "pull push login", "brew": "install", "apt": "install update",
    "apt-get": "install update", "apk": "add", "dnf": "install", "yum": "install", "snap": "install",
    "dotnet": "restore", "rustup": "install update", "deno": "add cache install",
}
"""Subcommands that set something up from the network; `python -m pip install` is read too."""
_FETCHES_BY_TWO = frozenset({
    ("git", "submodule", "add"), ("git", "submodule", "update"), ("go", "mod", "download"), ("go", "mod", "tidy"),
    ("git", "lfs", "fetch"), ("git", "lfs", "pull"), ("git", "remote", "update"), ("docker", "compose", "pull"),
})
_RANDOM_BY: Mapping[str, str] = {"shuf": "shuf", "sort": "-R --random-sort", "openssl": "rand"}
LAUNCHER_OPTIONS: Mapping[str, str] = {
    "env": "-C -u --chdir --unset", "exec": "-a", "ionice": "-c --class", "stdbuf": "-e -i -o --error --input --output",
    "sudo": "-g -p -u --group --prompt --user", "time": "-f -o --format --output", "timeout": "-s --signal",
    "xargs": "-E -I -a -d --arg-file --delimiter",
    "xvfb-run": "-e -f -p -s --auth-file --error-file --server-args --xauth-protocol",
}
"""Options of launchers with a value behind them that is no number."""
_WITH_VALUE = frozenset({"-C", "-c", "--context", "--cwd", "--dir", "--git-dir", "--prefix", "--work-tree"})
_TARGETS = frozenset({
    ("bun", "test"), ("cargo", "build"), ("cargo", "check"), ("cargo", "clippy"), ("cargo", "nextest"),
    ("cargo", "test"), ("craco", "test"), ("deno", "test"), ("dotnet", "build"), ("dotnet", "test"), ("go", "build"),
    ("go", "test"), ("go", "vet"), ("mix", "test"), ("npm", "run"), ("npm", "t"), ("npm", "test"),
    ("playwright", "test"), ("pnpm", "run"), ("pnpm", "test"), ("react-scripts", "test"), ("swift", "test"),
    ("yarn", "run"), ("yarn", "test"),
})
_TESTS = frozenset({"check", "nextest", "t", "test", "tests", "unittest"})
_RUNS_NOTHING = frozenset({
    "--co", "--collect-only", "--collectonly", "--dry-run", "--fixtures", "--fixtures-per-test", "--help", "--list",
    "--listTests", "--list-tests", "--markers", "--no-run", "--setup-only", "--setup-plan", "--version", "-V", "-h",
    "-list",
})
# fmt: on
NAMED: Mapping[str, frozenset[str]] = {trait: frozenset(names.split()) for trait, names in _TABLE.items()}
_NONE = frozenset[str]()
_TRAITS: Mapping[str, frozenset[str]] = {
    name: frozenset(trait for trait in NAMED if name in NAMED[trait])
    for name in frozenset[str]().union(*NAMED.values())
}


def has_trait(program: str, *traits: str) -> bool:
    """Return whether a program, given with or without its folder, has one of these traits."""
    return not _TRAITS.get(program.rpartition("/")[2], _NONE).isdisjoint(traits)


def runs_nothing(words: Sequence[str]) -> bool:
    """Return whether an option asks a test program to run no test."""
    return not _RUNS_NOTHING.isdisjoint(words)


def judges(words: Sequence[str], *, only_tests: bool) -> bool:
    """Return whether the words of a command, without launchers, test or (unless `only_tests`) check or build a project.

    A program that another one starts counts too, as in `uv run pytest`.
    """
    names = [word.rpartition("/")[2] for word in words if not word.startswith("+")]
    if not names or runs_nothing(names) or has_trait(names[0], COMPARE, SHOW, FILTER, SURE, ARRANGE):
        return False
    if names[0] in ("pip", "pip3") or {"install", "add"} & set(names[1:3]):
        return False
    tests = not _TESTS.isdisjoint(names)
    builds = has_trait(names[0], BUILD) and "-n" not in names and (tests or not only_tests)
    targets = [pair for pair in itertools.pairwise(names) if pair in _TARGETS]
    tools = NAMED[TEST] if only_tests else NAMED[TEST] | NAMED[JUDGE]
    targeted = any(not only_tests or tests or pair[1] in _TESTS for pair in targets)
    return not tools.isdisjoint(names) or builds or targeted or ("node" in names and "--test" in names)


def why_not_deterministic(words: Sequence[str]) -> str:
    """Return why the result of a command, without launchers, can differ each time; "" if no reason is known."""
    name, arguments = words[0].rpartition("/")[2], operands(words[1:], _WITH_VALUE)
    if name.startswith("python") and arguments[:1] == ["pip"]:
        name, arguments = "pip", arguments[1:]
    name = "pip" if name.startswith("pip") and name[3:].replace(".", "").isdigit() else name
    fetches = arguments[:1] != [] and arguments[0] in _FETCHES.get(name, "").split()
    alone = name in ("yarn", "bundle") and not arguments and {"--version", "-v", "--help", "-h"}.isdisjoint(words)
    fetches = fetches or (name, *arguments[:2]) in _FETCHES_BY_TWO or alone
    fetches = fetches or (name == "rsync" and any(":" in one.partition("/")[0] for one in arguments))
    if fetches or has_trait(name, NETWORK):
        return "uses the network"
    options = {word.partition("=")[0] for word in words}
    random = not options.isdisjoint(_RANDOM_BY.get(name, "").split()) and "--random-source" not in options
    return "gives a different result every time" if random or has_trait(name, CLOCK, RANDOM) else ""


def operands(arguments: Sequence[str], with_value: frozenset[str]) -> list[str]:
    """Return the arguments that are no options, nor the values of these options."""
    pairs = zip(["", *arguments], arguments, strict=False)
    return [argument for before, argument in pairs if not argument.startswith("-") and before not in with_value]
