"""Reports what a task left that no commit or clone has as it is, each with its path and a fix, once per run.

Git keeps files, links and the executable bit. It keeps no empty folder, no pipe, no other permission and no nested
repository, and some file systems hold only one of two names that differ in case.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence

from idumb.app.core.run_context import Attempt, Built, RunContext
from idumb.app.core.services import Services
from idumb.app.ports.repository import Inventory, Trees
from idumb.app.worktree import tool_leftovers
from idumb.domain import tool_files, wording
from idumb.domain.proof.ledger import LINK, Change

_REPORTED = "clone losses"
_SPECIAL = "special files"
_MOST = 5
_EXECUTABLE = 0o100755


def report(context: RunContext, attempt: Built, tree: str, inventory: Inventory, changes: Sequence[Change]) -> None:
    """Report special files, permissions, empty folders and similar names that the attempt left."""
    lines = (
        *_special(context, attempt, tree, inventory),
        *_modes(context.work, changes),
        *_empty(context.work, attempt, tree, inventory),
        *_twins(inventory, changes),
    )
    _note_once(context, attempt.task.id, lines)


def _note_once(context: RunContext, task: str, lines: Iterable[str]) -> None:
    reported: set[str] = context.notes.setdefault(_REPORTED, set())
    for line in dict.fromkeys(lines):
        if line not in reported:
            reported.add(line)
            context.services.reporter.note(f"{task}: {line}")


def _special(context: RunContext, attempt: Built, tree: str, inventory: Inventory) -> Iterator[str]:
    if not inventory.special:
        return
    here = context.workspace.kind == "here"
    before = context.services.trees.special_at(attempt.snapshot.commit) if here else ()
    named: set[str] = context.notes.setdefault(_SPECIAL, set())  # a clone keeps those of earlier tasks
    made = (path for path in inventory.special if path not in before and path not in named)
    new = tool_leftovers.work_only(context.services, context.journal.state, made, tree, trees=context.work)
    named.update(new)
    if new:
        yield (
            f"{wording.listed(new)} is a pipe, a socket or a device, so no commit and no clone has it."
            " Create it when the program or the check starts"
        )


def _modes(work: Trees, changes: Sequence[Change]) -> Iterator[str]:
    kept = {c.path: c.new.mode for c in changes if c.new is not None and c.new.mode != LINK}
    for path, bits in list(work.lost_modes(kept).items())[:_MOST]:
        cloned = 0o755 if kept[path] == _EXECUTABLE else 0o644
        yield (
            f"{path} has mode {bits:o}. Git keeps only the executable bit, so a clone has it with mode {cloned:o}."
            f" If the mode matters, set it where the file is used: chmod {bits:o} {shlex.quote(path)}"
        )


def _empty(work: Trees, attempt: Attempt, tree: str, inventory: Inventory) -> Iterator[str]:
    """Yield a line for each declared folder that is empty."""
    declared = (path.removesuffix("**").removesuffix("*").rstrip("/") for path in attempt.written)
    for folder in sorted(set(declared)) if inventory.empty else ():
        within = [path for path in inventory.empty if folder and path.startswith(f"{folder}/")]
        if within and not work.is_folder(tree, folder):
            yield (
                f"{within[0]} is an empty folder, so no commit and no clone has it."
                f" Declare and create a file in it, for example {within[0]}.gitkeep"
            )


def _twins(inventory: Inventory, changes: Sequence[Change]) -> Iterator[str]:
    created = [c.path for c in changes if c.old is None] if inventory.twins else []
    similar = [above for path in created for above in _leading(path) if above in inventory.twins]
    for pair in dict.fromkeys(tuple(sorted((path, inventory.twins[path]))) for path in similar):
        yield f"{' and '.join(pair)} differ only in case, so a clone on macOS or Windows has only one. Rename one"


def _leading(path: str) -> Iterator[str]:
    parts = path.split("/")
    return ("/".join(parts[:count]) for count in range(1, len(parts) + 1))


def nested_repositories(context: RunContext, attempt: Built, tree: str, inventory: Inventory) -> list[str]:
    """Return why an attempt in a clone fails that created repositories: their files would be lost with the clone."""
    made = sorted(set(inventory.repositories) - set(context.services.trees.repositories()))
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
    head = services.history.head_tree()
    committed = [path for path in services.trees.links() if head is not None and services.trees.entry(head, path)]
    for path, target in list(_to_ignored(services.trees, tree, committed))[:_MOST]:
        yield _link_words(path, target)
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
