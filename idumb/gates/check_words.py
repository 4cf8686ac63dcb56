"""What evidence of a check in a working tree of its own says besides the output: what it had, changed or may need."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from idumb import lazy_pattern
from idumb.app.ports.checks import LINKED, PROTECTED, Borrowed
from idumb.domain import check_lines, wording
from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import Evidence
from idumb.gates import surroundings

if TYPE_CHECKING:
    from idumb.domain.settings import CheckSettings
    from idumb.gates.proving import Proving

_DENIED = lazy_pattern.compile(
    "Read-only file system|cross-device link|EXDEV|Operation not permitted|Bad owner or permissions|owned by uid 65534|"
    "effective uid is not 0|must be (?:owned|setuid)|new privileges"
)
"""What programs print that miss the rights of another user, or that cannot write to a protected file."""


class Hint(NamedTuple):
    """What a failed check may need: a `sentence` for its output, and the same in short, "" if another run shows it."""

    sentence: str
    may_need: str


def with_borrowed(made: Evidence, borrowed: Borrowed) -> Evidence:
    """Return evidence that names what the check had from the user's working tree."""
    linked = [path for path, how in borrowed.ways.items() if how == LINKED]
    weaker = [f"may use {wording.listed(borrowed.ways)}, which the commit does not hold (checks.provide)"]
    if linked:
        weaker.append(f"could change your own {wording.listed(linked)}")
    output = made.output
    if borrowed.launcher and made.result in (evidence.FAILED, evidence.ERRORED) and _DENIED.search(output):
        paths = ", ".join(path for path, how in borrowed.ways.items() if how == PROTECTED)
        note = f"idumb protects {paths}: it discards what a check writes there, and sudo does not work in a check"
        output = f"{output.rstrip()}\n[{note}. If it must, write `checks: {{share: [{paths}]}}`]".lstrip()
    return dataclasses.replace(made, weaker=tuple(weaker), output=output)


def with_changed(made: Evidence, changed: Sequence[str]) -> Evidence:
    """Return evidence that names the files of the tree that the check changed."""
    note = f"[the check changed {wording.listed(changed)}, which the commit holds; idumb restored it]"
    return dataclasses.replace(made, output=f"{made.output.rstrip()}\n{note}".lstrip(), changed=tuple(changed))


def with_changed_installers(made: Evidence, changed: Mapping[str, Sequence[str]]) -> Evidence:
    """Return evidence that also names what changed during the run and decided what `checks.prepare` installed."""
    weaker = [words for reasons in changed.values() for words in reasons]
    return dataclasses.replace(
        made,
        weaker=tuple(dict.fromkeys((*made.weaker, *weaker))),
        entry_points=tuple(dict.fromkeys((*made.entry_points, *changed))),
    )


def explained(made: Evidence, hints: Iterable[Hint]) -> Evidence:
    """Return evidence with hints below its output."""
    given = tuple(hints)
    lines = "".join(f"\n[{hint.sentence}]" for hint in given)
    return dataclasses.replace(
        made,
        output=f"{made.output.rstrip()}{lines}".lstrip() if lines else made.output,
        may_need="; ".join(hint.may_need for hint in given if hint.may_need),
    )


def of_tree(made: Evidence, proving: Proving, configured: CheckSettings | None) -> Iterator[Hint]:
    """Yield what the working tree lacks, or had until idumb removed it."""
    yield from (Hint(words, words) for words in proving.missing)
    words = f"{made.command}\n{made.output}"
    for path in proving.removed:
        if re.search(rf"(?<![\w.-]){re.escape(path)}(?![\w-])", words):
            line = check_lines.adding(configured, {"cache": (path, f"{path}/**")}, verb="add")
            fix = f"If this check needs it, let this check make it, or {line}"
            yield Hint(
                f"an earlier check left {path}, which idumb removed. {fix}",
                f"{path}, which an earlier check left: {line}",
            )
            return


def of_user(made: Evidence, environment: Mapping[str, str], configured: CheckSettings | None) -> Iterator[Hint]:
    """Yield what the user's repository and environment have, but not those of a check."""
    if surroundings.compares_with_head(made.command or ""):
        fix = "`git diff --exit-code` shows whether a file of the work changed since"
        yield Hint(
            f"in a check, HEAD is the commit before the work, and the index has the work. {fix}",
            "`git diff --exit-code`, because HEAD is the commit before the work",
        )
    if unseen := surroundings.unseen_variables(f"{made.command}\n{made.output}", environment):
        names = ", ".join(unseen)
        line = f"add {names} to `environment` in .idumb/config.yaml"
        yield Hint(f"checks do not see your {names}. If this check needs it, {line}", f"your {names}: {line}")
    if ref := surroundings.missing_ref(made.output):
        line = check_lines.adding(configured, {"tree": "here"}, verb="add")
        fix = f"Compare with HEAD or with a tag. If it needs {ref}, {line}"
        yield Hint(
            f"a check has your commits and tags, but no branches and no remotes. {fix}",
            f"{ref}, because a check has no branches and no remotes: {line}",
        )


def around(made: Evidence, environment: Mapping[str, str], user: str, root: str) -> tuple[str, ...]:
    """Return what is around the user's working tree and not around that of the check, if it names that."""
    words = f"{made.command}\n{made.output}"
    named = surroundings.mentioned(made.command or "", made.output, environment)
    return (*named, *[*surroundings.beside(words, user, root)][:1])


def of_surroundings(names: Sequence[str], configured: CheckSettings | None, *, shown: bool) -> Iterator[Hint]:
    """Yield what to do about names of `around`; `shown`: another run shows whether the check needs them."""
    for name in names:
        yield Hint(surroundings.advice(name, configured), "" if shown else surroundings.may_need(name, configured))
