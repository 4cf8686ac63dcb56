"""Reports what a task left that no commit or clone has as it is, each with its path and a fix, once per run."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from idumb.app.core.attempt import Attempt
from idumb.app.core.run_context import RunContext
from idumb.app.core.services import Services
from idumb.app.ports.repository import Trees
from idumb.app.worktree import tool_leftovers
from idumb.domain import tool_files, wording
from idumb.domain.proof.ledger import LINK, Change

_REPORTED = "clone losses"


def _note_once(context: RunContext, task: str, lines: Iterable[str]) -> None:
    reported: set[str] = context.notes.setdefault(_REPORTED, set())
    for line in dict.fromkeys(lines):
        if line not in reported:
            reported.add(line)
            context.services.reporter.note(f"{task}: {line}")


def nested_repositories(context: RunContext, attempt: Attempt, tree: str) -> list[str]:
    """Return why an attempt in a clone fails that created repositories: their files would be lost with the clone."""
    made = sorted(set(context.work.repositories()) - set(context.services.trees.repositories()))
    if not made or context.workspace.kind == "here" or context.commits is not None:
        return []  # here they stay, and builders' commits have a check of their own
    leftover = tool_leftovers.of_attempt(context, attempt, tree)
    made = [path for path in made if leftover(path) is None]
    if not made:
        return []
    words = f"it created repositories in its clone, which cannot be delivered: {wording.listed(made)}."
    return [f"{words} Create files without `git init` or `git clone`, or add a submodule before the run"]


def report_links(context: RunContext, attempt: Attempt, tree: str, changes: Iterable[Change]) -> None:
    """Report new and changed links to files that git ignores or that a tool left: in a clone they lead nowhere."""
    links = [change.path for change in changes if change.new is not None and change.new.mode == LINK]
    if links:
        leftover = tool_leftovers.of_attempt(context, attempt, tree)
        ignored = _to_ignored(context.work, tree, links)
        left = ((path, target) for path in links if (target := context.work.inside_target(path)) and leftover(target))
        _note_once(context, attempt.task.id, (_link_words(*pair) for pair in dict((*ignored, *left)).items()))


def _to_ignored(work: Trees, tree: str, links: Iterable[str]) -> Iterator[tuple[str, str]]:
    for path in links:
        target = work.inside_target(path)
        if target is not None and work.entry(tree, target) is None and not work.is_folder(tree, target):
            yield path, target


def _link_words(path: str, target: str) -> str:
    why = "a tool left" if tool_files.names(f"{target}/") else "git ignores"
    return (
        f"{path} is a link to {target}, which {why}, so in a clone it leads nowhere. Write the file itself, or track"
        f" the target: git add -f {shlex.quote(target)}"
    )


def at_start(services: Services, tree: str, workspace: str) -> Iterator[str]:
    """Yield a line for what the user's own files have and the clones of a run do not."""
    if workspace == "here":
        return
    nested = [path for path in services.trees.repositories() if services.trees.entry(tree, path) is None]
    if nested:
        yield (
            f"The clone in which tasks run does not have these nested repositories: {wording.listed(nested)}. If a task"
            " or a check needs them, add them as submodules, or use --workspace here"
        )


def report_line_endings(context: RunContext, task: str, candidate: str, committed: str, changed: Iterable[str]) -> None:
    """Report files that git commits with other line endings than they have in the working tree."""
    work = context.services.trees

    def differs(path: str) -> bool:
        written, stored = work.entry(candidate, path), work.entry(committed, path)
        if written is None or stored is None or written.oid == stored.oid or LINK in (written.mode, stored.mode):
            return False
        return work.read(written.oid).replace(b"\r\n", b"\n") == work.read(stored.oid).replace(b"\r\n", b"\n")

    normalised = [path for path in changed if differs(path)]
    if normalised:
        line = (
            f"git converts the line endings of {wording.listed(normalised)} in commits (text, eol or core.autocrlf), so"
            " a clone has other bytes. To keep the bytes, set `-text` for the file in .gitattributes"
        )
        _note_once(context, task, [line])
