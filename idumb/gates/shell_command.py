"""Runs one command string with `/bin/sh -c`, and says what its end proves.

Besides its output, the evidence says what a check had besides the tree, what it changed or may need.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from idumb.domain import paths, project_files, wording
from idumb.domain.plans import empty_checks
from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import Evidence
from idumb.domain.settings import USER_HOME, Settings
from idumb.system import child_process

if TYPE_CHECKING:
    from threading import Event

    from idumb.app.core.services import ProofCheckout

SHELL = "/bin/sh"
NOT_FOUND = 127
_NOT_STARTED = {126: "execute", NOT_FOUND: "find"}
NO_PROOF = ("precondition", "setup", "rollback of ")
"""Subjects of commands that prepare or undo work and prove nothing about it."""
_LARGEST = 1 << 22
_HOME = ("~/", "$HOME", "${HOME")
_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b|(?<=[$'{.])[A-Z][A-Z0-9]+\b")
_NOT_INSTALLED = re.compile(
    r"(?i)(?:no module named|cannot find (?:module|package)|command not found:)\s*['\"]?(@?[\w.-]+(?:/[\w.-]+)?)"
    r"|([\w.-]+): (?:command )?not found"
)
_LACKING = ("not found", "cannot find", "could not find", "cannot resolve", "could not resolve", "no module named")
_MISSING = (*_LACKING, "no such file", "does not exist", "cannot open")
_NEVER = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".git"})


class Shell(Struct, frozen=True):
    """`limits`, `idle_timeout` (seconds) and `beside` are those of `child_process.run`."""

    redact: Callable[[str], str]
    idle_timeout: float | None = None
    limits: Mapping[str, int] | None = None
    beside: Event | None = None

    def run(
        self,
        asked: Evidence,
        root: str,
        environment: Mapping[str, str],
        timeout: float | None,
        launcher: Sequence[str] = (),
    ) -> Evidence:
        """Return the evidence `asked` with the result of its command in `root`, an absolute path.

        `launcher` are the arguments of a program that becomes the shell.
        """
        command = asked.command or ""
        asked = replace(asked, result=evidence.ERRORED, argv=(SHELL, "-c", command))
        if "\0" in command:
            return replace(asked, output="the command contains a NUL character")
        try:
            finished = child_process.run(
                (*launcher, *asked.argv),
                cwd=root,
                environment=environment,
                timeout=timeout,
                idle_timeout=self.idle_timeout,
                limits=self.limits,
                beside=self.beside,
            )
        except OSError as problem:
            return replace(asked, output=f"{SHELL} could not be started in {root}: {problem.strerror}")
        output = finished.output.text(self.redact)
        result, note = _judged(asked, finished, output)
        return replace(
            asked,
            result=result,
            exit_code=finished.exit_code,
            output=f"{output.rstrip()}\n[{note}]".lstrip() if note else output,
            output_sha256=finished.output.sha256,
            truncated=finished.output.truncated,
            seconds=finished.seconds,
            cause=finished.cause,
        )


def _judged(asked: Evidence, finished: child_process.Finished, output: str) -> tuple[str, str]:
    """Return the result, and a note that explains what the exit code does not."""
    if finished.timed_out:
        return evidence.TIMED_OUT, finished.words()
    if finished.exit_code in _NOT_STARTED:
        could_not = f"exit {finished.exit_code}: the shell could not {_NOT_STARTED[finished.exit_code]} a program"
        return evidence.ERRORED, finished.words() or f"{could_not}, so nothing was checked"
    if finished.exit_code != 0:
        return evidence.FAILED, finished.words()
    counts = output and not asked.subject.startswith(NO_PROOF) and not finished.output.truncated
    if counts and (no_tests := empty_checks.ran_no_test(asked.command or "", output)):
        # An invariant also holds in a project that has no test yet.
        is_invariant = "invariant" in asked.subject.split(" ")
        return evidence.UNPROVEN if is_invariant else evidence.FAILED, no_tests
    return evidence.PASSED, finished.words()


class Hints(NamedTuple):
    """What is known when a check fails.

    That is the configuration, the `ignored` paths of the user's project at `root`, and his `variables`.
    Paths of the repository above the project begin with `../`.
    """

    settings: Settings = Settings()
    root: str = os.devnull
    ignored: Callable[..., Iterable[str]] = lambda **_: ()
    variables: Callable[[], Mapping[str, str]] = dict

    def of(self, made: Evidence, environment: Mapping[str, str], proof: ProofCheckout) -> Iterator[str]:
        """Yield what the check may need, because its command or output names it; `environment` is its own."""
        yield from proof.missing
        home = environment.get("HOME", "")
        is_private = bool(home) and os.path.dirname(home) == os.path.dirname(environment.get("TMPDIR", ""))
        if is_private and (_has(made.command or "", _HOME) or _lacks(made.output, home)):
            line = project_files.how_to_set("checks", self.settings.checks, {"home": USER_HOME})
            yield f"your HOME, because checks have a private, empty one: {line}"
        wanted = {*_VARIABLE.findall(f"{made.command}\n{made.output}")}.difference(environment)
        absent = [*self._absent(proof.root)]
        if named := [*dict.fromkeys((*_named(made, absent, self._searched()), *self._defining(wanted, absent)))]:
            yield self._to_provide(named)
        missing = _NOT_INSTALLED.findall(made.output)
        if not named and (commands := self._installing({package or program for package, program in missing})):
            line = project_files.how_to_set("checkout", self.settings.checkout, {"prepare": commands})
            yield f"what is not installed there: {line}"
        yield from _off_path({program or "python" for _, program in missing}, environment, proof)
        if names := sorted(wanted.intersection(self.variables())):
            line = "add what they need to `environment` in .idumb/config.yaml"
            yield f"{', '.join(names)}, which checks do not see: {line}"

    def of_hook(self, words: str, root: str) -> str:
        """Return what a hook may need in `root` that refused because it lacks something; "" if nothing is known."""
        if not _has(words.lower(), _MISSING):  # `the build failed` names no folder
            return ""
        named = _named(Evidence("hook", "", evidence.FAILED, output=words), [*self._absent(root)], self._searched())
        return self._to_provide(named) if named else ""

    def _to_provide(self, named: Sequence[str]) -> str:
        rules = [path.replace("../", "") for path in named]  # a plain name is also that above the project
        line = project_files.how_to_set("checkout", self.settings.checkout, {"provide": rules})
        return f"{wording.listed(named)}, which git ignores: commit it if it is work, or {line}"

    def _searched(self) -> list[str]:
        """Return the folders of the user's PATH that are in his project."""
        folders = self.variables().get("PATH", "").split(os.pathsep)
        return [os.path.relpath(folder, self.root) for folder in folders if paths.is_below(folder, self.root)]

    def _defining(self, variables: Iterable[str], absent: Iterable[str]) -> Iterator[str]:
        """Yield the files such as `.env` that define one of these variables."""
        defined = re.compile(rf"^(?:export )?(?:{'|'.join(variables) or '(?!)'})=", re.MULTILINE)
        own = (path for path in absent if path.rpartition("/")[2].startswith(".env"))
        yield from (path for path in own if defined.search(self._text(path) or ""))

    def _text(self, path: str) -> str | None:
        """Return the text of a file of the project; None if there is none."""
        with contextlib.suppress(OSError), open(os.path.join(self.root, path), errors="replace") as stream:
            return stream.read(_LARGEST)
        return None

    def _installing(self, missing: Iterable[str]) -> Sequence[str]:
        """Return the commands that install one of these programs and packages, if a manifest names it."""
        if not missing or self.settings.checkout.prepare or self.settings.checkout.provide:
            return ()
        files = project_files.manifests(self._text)
        names = "|".join(map(re.escape, missing))
        if not re.search(rf"(?<![\w-])(?:{names})(?![\w-])", "\n".join(files.values())):
            return ()
        return [command for each in project_files.proposals(files) if each.folder for command in each.commands]

    def _absent(self, root: str) -> Iterator[str]:
        """Yield the user's ignored paths that are not in the tree of the check."""
        for name in self.ignored(above=True):
            path = name.rstrip("/")
            if path.rpartition("/")[2] in _NEVER or paths.matches_any(name, paths.OWN_FILES):
                continue
            if not os.path.lexists(os.path.join(root, path)):
                yield path


def _off_path(wanted: Collection[str], environment: Mapping[str, str], proof: ProofCheckout) -> Iterator[str]:
    """Yield programs of what is installed in the tree that the command could not find, or that find a package."""
    for folder in (*proof.provided, *proof.prepared, ""):
        for programs in (os.path.join(folder, "bin"), os.path.join(folder, ".bin")):
            place = os.path.join(proof.root, programs)
            there = [name for name in wanted if os.path.exists(os.path.join(place, name))]
            if there and place not in environment.get("PATH", "").split(os.pathsep):
                yield f"{programs}/{there[0]}, which is not on the PATH of checks: name it in the check"


def _lacks(output: str, home: str) -> bool:
    """Return whether a line says that something in a private home is missing, or names the home of `prepare`.

    pytest names its own folders in TMPDIR.
    """
    if any(f"{home}/" in line and _has(line.lower(), _MISSING) for line in output.splitlines()):
        return True
    place, _, own = home.rpartition("/")
    others = re.findall(rf"{re.escape(os.path.dirname(os.path.dirname(place)))}/\d+/\d+/{own}/", output)
    return any(other != f"{home}/" for other in others)


def _has(text: str, parts: Iterable[str]) -> bool:
    return any(part in text for part in parts)


def _named(made: Evidence, absent: Sequence[str], searched: Sequence[str]) -> list[str]:
    """Return the paths that a failed check names; tools name a missing package or program, not its folder."""
    words = f"{made.command}\n{made.output}"
    named = [path for path in absent if _names(words, path)]
    if named or not (made.result == evidence.ERRORED or _has(made.output.lower(), _LACKING)):
        return named
    folders = searched if made.result == evidence.ERRORED else ()  # a program was not found
    likely = {path for path in absent if any(paths.is_below(folder, path) for folder in folders)}
    return [path for path in absent if path in likely or path.rpartition("/")[2] in project_files.DEPENDENCIES]


def _names(words: str, path: str) -> bool:
    """Return whether words name a path as a whole, or a folder by its last name."""
    parts = "".join(c if c.isalnum() or c in "./_-" else " " for c in words).split()
    last = path.rpartition("/")[2]
    return any(part == path or part.startswith((f"{path}/", f"{path}.", f"{last}/")) for part in parts)


def with_hints(made: Evidence, hints: Iterable[str]) -> Evidence:
    """Return evidence with what the check may need below its output."""
    given = tuple(hints)
    lines = "".join(f"\n[it may need {hint}]" for hint in given)
    return replace(made, output=f"{made.output.rstrip()}{lines}".lstrip(), may_need="; ".join(given)) if given else made


def with_extras(made: Evidence, proof: ProofCheckout) -> Evidence:
    """Return evidence that names what the check had besides the tree."""
    weaker, locations = [*made.weaker], [*made.locations]
    if provided := proof.provided:
        weaker.append(f"may use {wording.listed(provided)}, which the commit does not hold (checkout.provide)")
    if cached := proof.cached:
        weaker.append(f"may use {wording.listed(cached)}, which checks of earlier tasks left (checkout.cache)")
    if prepared := proof.prepared:
        locations.append(f"{wording.listed(prepared)} <- checkout.prepare")
    return replace(made, weaker=tuple(weaker), locations=tuple(locations))


def with_own_paths(output: str, root: str) -> str:
    """Return output that names the working tree `root` and what is beside it as a reader in his own tree would."""
    first, *others = output.replace(f"{root}/", "").split(root)
    for part in others:
        is_longer = part[:1].isalnum() or part[:1] in {"_", ".", "-"}  # another folder, whose name begins alike
        first += f"{root if is_longer else '.'}{part}"
    return first.replace(f"{os.path.dirname(root)}/", "../")
