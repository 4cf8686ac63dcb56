"""Measures the work from bytes: frozen files, and what changed in them compared with what the task declares.

Also compares an attempt with an earlier one under the same envelope, base and request: both must leave the same files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec.structs import replace

from idumb.app.core import questions
from idumb.app.core.attempt import MEASURED, Attempt
from idumb.app.core.run_context import RunContext
from idumb.app.core.services import Trees
from idumb.app.worktree import exposed_secrets, tool_leftovers
from idumb.domain import agent, contract, outcome, paths, settings, wording
from idumb.domain.errors import Refusal
from idumb.domain.plans.plan import Task
from idumb.domain.proof import gate_table, ledger
from idumb.domain.proof.gate import Deadline
from idumb.domain.proof.ledger import LINK, SUBMODULE, Change, Entry, Ledger
from idumb.domain.runs.event import Event

_LOOKED_AT = 20
"""How many earlier attempts are looked at for one like this."""
_LONGEST = 4 * 1024 * 1024
_LONGEST_RECORDED = 1024 * 1024
"""How many bytes are read to judge the declared symbols of a file, and to record the others of all files."""


def measure(context: RunContext, attempt: Attempt) -> Attempt:
    """Freeze the files in a tree, and compare what changed since the base with the declared files."""
    measured = _compared(context, freeze(context, attempt))
    deviations, undeclared = measured.ledger.deviations, measured.ledger.undeclared
    secret_names = exposed_secrets.why_names_fail(context, attempt, measured.ledger.changed)
    policy = _policy(context, attempt.task, undeclared) if deviations and not secret_names else settings.STOP
    if policy == settings.KEEP:
        measured = _accepting(context, measured, undeclared)
    elif policy == settings.LEAVE_OUT:
        measured = _without_deviations(context, measured)
    compared, no_time = _compare_symbols(context, measured)
    compared = _with_changes_elsewhere(context, measured, compared)
    measured = measured.at(MEASURED, ledger=compared, deviates=bool(compared.deviations))
    problems = [*filter(None, [secret_names, no_time]), *_outside_links(context, measured.changes)]
    problems += _made_repositories(context, measured)
    if compared.deviations:
        measured = replace(measured, excusable=not problems and attempt.outcome is None)
        problems = [f"changed outside its declared files: {wording.listed(compared.deviations)}", *problems]
    only_asked = attempt.in_place and attempt.outcome == outcome.WAITING  # what a person left from before stays
    if problems and not only_asked:
        return measured.ended(outcome.FAILED, "; ".join([*filter(None, [attempt.reason]), *problems]))
    return measured


def freeze(context: RunContext, attempt: Attempt) -> Attempt:
    """Return the attempt with the tree of the files as they are, what it changed, and what tools left.

    Files that undeclared ignore rules hide are in the tree. Rules that the task declares may hide what they like; what
    they hide is reported.
    """
    frozen = _frozen(context, attempt)
    hidden = _hidden(context, frozen.changes)
    _report_hidden(context, attempt.task, hidden)
    declared = paths.cover(attempt.written)
    by_others = [path for path, rules in hidden.items() if not declared(rules)]
    return _frozen(context, attempt, by_others) if by_others else frozen


def _frozen(context: RunContext, attempt: Attempt, hidden: Sequence[str] = ()) -> Attempt:
    """Return the attempt with the tree of its files, also of these `hidden` ones.

    In the user's own tree, only declared paths are the task's work: people edit other files at the same time. In strict
    mode, he is asked whose the others are that changed while his editor built the task.
    """
    tree = context.work.scan((*attempt.literal_paths, *hidden))
    changes = context.work.changes(attempt.base, tree)
    if context.workspace.in_place:
        asks = context.strict and contract.in_editor(attempt.plan, attempt.task, context.services.settings)
        covers = paths.cover((*attempt.written, *attempt.accepted_paths))
        others = (c for c in changes if not paths.matches_any(c.path, paths.OWN_FILES))
        changes = tuple(c for c in others if asks or covers(c.path))
    changes, left = tool_leftovers.split(context, attempt, changes, tree)
    return replace(attempt, candidate=tree, changes=changes, tool_files=left)


def _hidden(context: RunContext, changes: Sequence[Change]) -> Mapping[str, str]:
    """Return each path that git ignores since the attempt, with the ignore file that hides it."""
    rules = {c.path: c for c in changes if c.new is not None and c.path.rpartition("/")[2] == paths.IGNORE_FILE}
    if not rules:  # asking git is slow
        return {}
    old = {path: bytes_of(context.work, change.old, _LONGEST) or b"" for path, change in rules.items()}
    before = {path: data.decode("utf-8", "surrogateescape").splitlines() for path, data in old.items()}
    hidden = context.work.hidden_by(rules)
    return {path: file for path, (file, rule) in hidden.items() if rule not in before[file]}


def _report_hidden(context: RunContext, task: Task, hidden: Mapping[str, str]) -> None:
    note = context.services.reporter.note
    for rules in sorted(set(hidden.values())):
        ignored = (path for path, file in sorted(hidden.items()) if file == rules)
        note(f"Since {task.id} ran, git ignores, because of {rules}: {wording.listed(ignored)}")


def _compared(context: RunContext, attempt: Attempt) -> Attempt:
    protected = context.protected(attempt.plan)
    found = ledger.compare(attempt.task.files, attempt.changes, protected, attempt.accepted_paths)
    return replace(attempt, ledger=found)


def _compare_symbols(context: RunContext, attempt: Attempt) -> tuple[Ledger, str]:
    """Return the ledger with the symbols of the changed files, and what fails the attempt because no time was left.

    If the task declares symbols, every file counts. Otherwise symbols are only recorded: of files in a known language,
    up to a size.
    """
    task, compared = attempt.task, attempt.ledger
    judged = [c for c in attempt.changes if task.symbols is not None or context.services.gates.can_read(c.path)]
    left = _LONGEST if task.symbols is not None else _LONGEST_RECORDED
    seconds = gate_table.time_to_judge(context.services.settings, gate_table.LEDGER)
    deadline = Deadline.after(seconds, context.services.clock.monotonic) if len(judged) > 1 else None
    read: list[ledger.SymbolSet] = []
    late: list[str] = []
    for change in judged:
        if deadline is not None and deadline.passed:
            late.append(change.path)
            read.append(ledger.SymbolSet(change.path, None, None))
            continue
        before, size = _definitions(context, change.path, change.old, left)
        after, more = _definitions(context, change.path, change.new, left)
        left -= size + more if task.symbols is None else 0
        if after is None or before != after:
            read.append(ledger.SymbolSet(change.path, before, after))
    words = f"the symbols of {wording.listed(late)} were not judged in the time of the gate ledger"
    with_symbols = replace(compared, symbols=ledger.compare_symbols(task.symbols, read))
    return with_symbols, words if late and task.symbols is not None else ""


def _definitions(
    context: RunContext, path: str, entry: Entry | None, limit: int
) -> tuple[ledger.Definitions | None, int]:
    """Return what a file defines, and its size; None if it is too large or cannot be read."""
    if entry is None or entry.mode in (LINK, SUBMODULE):
        return {}, 0
    data = bytes_of(context.work, entry, limit)
    return (None, 0) if data is None else (context.services.gates.definitions(path, data), len(data))


def bytes_of(work: Trees, entry: Entry | None, limit: int) -> bytes | None:
    """Return the bytes of a file; None if there is none, or if there are more than the limit."""
    if entry is None or entry.mode in (LINK, SUBMODULE):
        return None
    pieces, size = [], 0
    for piece in work.pieces(entry.oid):
        size += len(piece)
        if size > limit:
            return None
        pieces.append(piece)
    return b"".join(pieces)


def _with_changes_elsewhere(context: RunContext, attempt: Attempt, compared: Ledger) -> Ledger:
    """Return the ledger with a protected line for each path outside the project that a program changed.

    A file that did not change in the checkout, but in the user's tree, is marked.
    """
    if context.workspace.in_place:
        return compared
    changes = context.work.changes_outside(attempt.base, attempt.candidate) if context.services.folder else ()
    lines = [ledger.Line(c.path, ledger.PROTECTED, c.kind, None, paths.OUTSIDE) for c in changes]
    trees, missing = context.services.trees, compared.paths(ledger.MISSING)
    present = trees.scan(attempt.literal_paths) if missing else attempt.base
    moved = [path for path in missing if trees.entry(present, path) != trees.entry(attempt.base, path)]
    note = "in the tree of the user, where programs must not write: they work in the folder where they start"
    own = (replace(line, rule=note) if line.path in moved else line for line in compared.lines)
    return replace(compared, lines=(*own, *lines))


def _outside_links(context: RunContext, changes: Iterable[Change]) -> list[str]:
    """Return a line for each new or changed link that leads out of the working tree, where no commit has the bytes."""
    links = [c.path for c in changes if c.new is not None and c.new.mode == LINK]
    outside = [(path, target) for path in links if (target := context.work.outside_target(path)) is not None]
    way = "write the file itself, or make it a relative link that stays inside"
    return [f"{path} is a link that leads out of the working tree, to {target}: {way}" for path, target in outside[:5]]


def _made_repositories(context: RunContext, attempt: Attempt) -> list[str]:
    """Return why an attempt fails that created repositories: git takes none of their files."""
    if context.workspace.in_place:
        return []
    made = sorted(set(context.work.repositories()) - set(context.services.trees.repositories()))
    leftover = tool_leftovers.of_attempt(context, attempt, attempt.candidate)
    made = [path for path in made if leftover(path) is None]
    if not made:
        return []
    words = f"it created repositories, which cannot be delivered: {wording.listed(made)}."
    return [f"{words} Create files without `git init` or `git clone`, or add a submodule before the run"]


def _policy(context: RunContext, task: Task, undeclared: Sequence[str]) -> str:
    """Return what happens with undeclared changes, by option, by an earlier answer, or by setting."""
    if context.request.on_deviation is not None:
        return context.request.on_deviation
    if undeclared and questions.are_kept(context.state, task.id, undeclared):
        return settings.KEEP
    return context.services.settings.run.on_deviation


def decided(context: RunContext, attempt: Attempt, *, keeps: bool) -> Attempt:
    """Return a measured attempt with the undeclared changes that a person keeps, or without: another candidate."""
    again = _accepting(context, attempt, attempt.ledger.undeclared) if keeps else _without_deviations(context, attempt)
    return replace(again, ledger=_compare_symbols(context, again)[0], deviates=False)


def _accepting(context: RunContext, attempt: Attempt, accepted: Sequence[str]) -> Attempt:
    return _compared(context, replace(attempt, accepted_paths=(*attempt.accepted_paths, *accepted)))


def _without_deviations(context: RunContext, attempt: Attempt) -> Attempt:
    """Return the attempt with its undeclared changes as they are in the base."""
    left_out = attempt.ledger.deviations
    rest = tuple(change for change in attempt.changes if change.path not in left_out)
    candidate = context.work.overlay(attempt.candidate, attempt.base, left_out)
    return _compared(context, replace(attempt, candidate=candidate, changes=rest))


def compare_with_earlier(context: RunContext, attempt: Attempt) -> Attempt:
    """Compare the work with the newest attempt like this one. Deterministic mode refuses a difference."""
    if context.state.number <= 1 and attempt.number <= 1:
        return attempt
    candidate = attempt.candidate
    by_person = agent.capabilities_of(attempt.announced["envelope"]["adapter"]).works_in_place
    if attempt.result is None or by_person:  # a person need not do the same twice
        return attempt
    earlier = _earlier(context, attempt)
    if earlier is None:
        return attempt
    left = earlier.payload["left"]
    lines = (line for line in earlier.payload["ledger"] if "symbol" not in line and line["actual"])
    touched = {*(line["path"] for line in lines), *attempt.ledger.changed}
    differing = _differing(context.work, left, candidate, touched)
    if not differing:
        return attempt
    other_attempt = f"run {earlier.run}, attempt {earlier.attempt}"
    shown = wording.listed(differing)
    context.journal.append(
        "nondeterminism.found",
        attempt.task.id,
        attempt.number,
        earlier={"run": earlier.run, "attempt": earlier.attempt, "tree": left},
        tree=candidate,
        paths=list(differing),
        envelope=attempt.announced["envelope"]["digest"],
        refused=context.request.deterministic,
    )
    context.services.reporter.note(
        f"{attempt.task.id} left other bytes in {shown} than {other_attempt}, under the same envelope, base and request"
    )
    if not context.request.deterministic:
        return attempt
    words = f"not deterministic: {shown} differ from {other_attempt}, under the same envelope, base and request"
    return replace(attempt, unlike=True).ended(outcome.FAILED, words)


def _earlier(context: RunContext, attempt: Attempt) -> Event | None:
    """Return how the newest attempt ended that began in the same way, and whose builder completed it."""
    log, announced = context.services.log, attempt.announced
    for begun in log.events(task=attempt.task.id, kind="attempt.started", newest_first=True, limit=_LOOKED_AT):
        payload = begun.payload
        same = (payload["request"], payload["envelope"]["digest"]) == (
            announced["request"],
            announced["envelope"]["digest"],
        )
        starts = ((payload["base"], attempt.base), (payload["present"], announced["present"]))
        if not same or (begun.run, begun.attempt) == (context.run, attempt.number):
            continue
        ended = log.events(run=begun.run, task=begun.task, kind="attempt.finished", after=begun.seq)
        last = next(reversed([event for event in ended if event.attempt == begun.attempt]), None)
        if last is None or (last.payload["builder"] or {}).get("outcome") != outcome.COMPLETED:
            continue
        if all(_differing(context.work, *pair) == () for pair in starts if pair[0] != pair[1]):
            return last
    return None


def _differing(work: Trees, first: str, second: str, among: Collection[str] | None = None) -> tuple[str, ...] | None:
    """Return the paths that differ, or of `among` these, without idumb's own files, which every run writes.

    None if the trees cannot be compared, because objects are gone.
    """
    try:
        changed = [change.path for change in work.changes(first, second)]
    except Refusal:
        return None
    return tuple(p for p in changed if (among is None or p in among) and not paths.matches_any(p, paths.OWN_FILES))
