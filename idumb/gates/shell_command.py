"""Runs one command string with `/bin/sh -c`, and says what its end proves.

Besides its output, the evidence says what a check had besides the tree, what it changed or may need.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from idumb.domain import paths, project_files, wording
from idumb.domain.plans import empty_checks
from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import Evidence
from idumb.domain.settings import USER_HOME, CheckoutSettings, CheckSettings
from idumb.system import child_process

if TYPE_CHECKING:
    from threading import Event

    from idumb.app.core.services import ProofCheckout

SHELL = "/bin/sh"
NOT_FOUND = 127
_NOT_STARTED = {126: "execute", NOT_FOUND: "find"}
NO_PROOF = ("precondition", "setup", "rollback of ")
"""Subjects of commands that prepare or undo work and prove nothing about it."""
_HOME = ("~/", "$HOME", "${HOME")
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
    """What is known when a check fails: the configuration, and the `ignored` paths of the user's working tree."""

    checks: CheckSettings = CheckSettings()
    checkout: CheckoutSettings = CheckoutSettings()
    ignored: Callable[[], Iterable[str]] = tuple

    def of(self, made: Evidence, environment: Mapping[str, str], proof: ProofCheckout) -> Iterator[str]:
        """Yield what the check may need, because its command or output names it; `environment` is its own."""
        yield from proof.missing
        home = environment.get("HOME", "")
        is_private = bool(home) and os.path.dirname(home) == os.path.dirname(environment.get("TMPDIR", ""))
        if is_private and (_has(made.command or "", _HOME) or _lacks(made.output, home)):
            line = project_files.how_to_set("checks", self.checks, {"home": USER_HOME})
            yield f"your HOME, because checks have a private, empty one: {line}"
        if named := _named(made, [*self._absent(proof.root)]):
            line = project_files.how_to_set("checkout", self.checkout, {"provide": named})
            yield f"{wording.listed(named)}, which git ignores: commit it if it is work, or {line}"

    def _absent(self, root: str) -> Iterator[str]:
        """Yield the user's ignored paths that are not in the tree of the check."""
        for name in self.ignored():
            path = name.rstrip("/")
            if path.rpartition("/")[2] in _NEVER or paths.matches_any(name, paths.OWN_FILES):
                continue
            if not os.path.lexists(os.path.join(root, path)):
                yield path


def _lacks(output: str, folder: str) -> bool:
    """Return whether a line says that something in a folder is missing; pytest names its own folders in TMPDIR."""
    return any(f"{folder}/" in line and _has(line.lower(), _MISSING) for line in output.splitlines())


def _has(text: str, parts: Iterable[str]) -> bool:
    return any(part in text for part in parts)


def _named(made: Evidence, absent: Sequence[str]) -> list[str]:
    """Return the paths that a failed check names; tools name a missing package or program, not its folder."""
    words = f"{made.command}\n{made.output}"
    named = [path for path in absent if _names(words, path)]
    if named or not (made.result == evidence.ERRORED or _has(made.output.lower(), _LACKING)):
        return named
    return [path for path in absent if path.rpartition("/")[2] in project_files.FOLDERS]


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
