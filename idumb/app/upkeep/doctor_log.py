"""Checks of `idumb doctor` that compare the event log with git's refs, the branch, commits, and files made from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from idumb.app.attempt import handoff_writer, projections
from idumb.app.contract import loading
from idumb.app.core import kept_runs, run_lookup, schedule
from idumb.app.core.services import STATE_FILE, Services, progress_path, run_ref
from idumb.app.session import operation, state_file
from idumb.app.verify import recorded_elsewhere
from idumb.app.worktree import done_work
from idumb.domain import health, outcome
from idumb.domain.errors import Refusal
from idumb.domain.health import Check, Symptom
from idumb.domain.runs.event import Event
from idumb.domain.runs.run import RunState

_REFS = "refs/idumb/"
_KEPT_BY = {"contract.amended": "the plans of the amended contract"}
_OF_RUN = (("base", "base_snapshot", "the snapshot before the run"), ("plans", "plans_object", "the plans of the run"))
"""Names of a run, the keys of `run.started` that have their objects, and what they are."""


def checks(services: Services) -> tuple[Check, ...]:
    look, made = Look(services), _Projections(services)
    return (
        Check("snapshots.kept", "what idumb keeps of runs, and how to free it", look.kept),
        Check("log.refs", "every snapshot and checkpoint in the event log is kept", look.refs, look.keep),
        Check("log.branch", "the branch has the commit of every done task", look.lost),
        Check("log.commits", "every task that a commit names as done is done", look.unknown, look.accept, alone=True),
        Check("projections.true", "the files in .idumb/brain match the event log", made.look, made.rebuild),
    )


class _Kept(Struct, frozen=True):
    """A ref that the event log expects, and the number of the event."""

    ref: str
    commit: str
    name: str
    seq: int


class Look(Struct, frozen=True):
    services: Services

    def kept(self) -> Iterator[Symptom]:
        """Yield how much only idumb's refs keep, and what frees it. git needs a tenth of a second for 500 tasks."""
        size = self.services.history.kept_bytes()
        if size is None:
            yield health.warn(health.NOT_EXAMINED, means="git cannot read all that is kept; see log.refs and git.refs")
            return
        words = kept_runs.counts(self.services)["words"] or "Kept: no snapshots of runs"
        yield health.passed(f"{words}. On disk: {size / 1e6:.1f} MB that only idumb keeps")

    def refs(self) -> Iterator[Symptom]:
        """Yield missing names and objects. A name can be restored while its object exists."""
        present = self.services.history.refs(_REFS)
        freed = kept_runs.freed(self.services)
        by_ref = {kept.ref: kept for kept in self._expected()}
        expected = [kept for kept in by_ref.values() if not kept_runs.freed_before(freed, kept.ref, kept.seq)]
        missing = [kept for kept in expected if kept.ref not in present]
        yield from map(self._missing, missing)
        yield from (_gone(kept) for kept in expected if kept.ref in present and not self._exists(kept.commit))
        yield health.passed(f"{len(expected) - len(missing)} of {len(expected)} exist")

    def keep(self, symptom: Symptom) -> str:
        ref, _, commit = symptom.subject.partition(" ")
        self.services.history.keep_ref(ref, commit)
        return f"{ref} names {commit[:12]} again"

    def _exists(self, oid: str) -> bool:
        """Return whether an object can be read."""
        try:
            self.services.trees.read(oid)
        except (Refusal, KeyError, ValueError):
            return False
        return True

    def _missing(self, kept: _Kept) -> Symptom:
        if not self._exists(kept.commit):
            return _gone(kept)
        return health.problem(
            f"nothing names {kept.name} any more; object {kept.commit[:12]} still exists",
            kept.ref,
            means="git gc may remove it",
            fixes=True,
            subject=f"{kept.ref} {kept.commit}",
        )

    def _expected(self) -> Iterator[_Kept]:
        """Yield the refs that events name; a later event on the same ref replaces an earlier one."""
        worktrees: dict[str, str] = {}
        of_runs: list[_Kept] = []
        for event in self.services.log.events():
            p = event.payload
            ref, snapshot = p.get("ref"), p.get("snapshot")
            if event.kind == "operation.started" and p.get("worktree"):
                worktrees[event.operation] = p["worktree"]
            elif event.kind == "run.started":
                names = (row for row in _OF_RUN if p.get(row[1]))
                of_runs += [
                    _Kept(self._name(event, worktrees, name), p[key], words, event.seq) for name, key, words in names
                ]
            elif isinstance(ref, str) and isinstance(snapshot, str):
                words = f"the snapshot of {event.task}, attempt {event.attempt} ({event.kind})"
                yield _Kept(ref, snapshot, words, event.seq)
                if p.get("kept"):
                    words = f"the task base of {event.task}, attempt {event.attempt}"
                    yield _Kept(f"{ref.removesuffix('base')}task-base", p["kept"], words, event.seq)
            elif isinstance(ref, str) and isinstance(p.get("object"), str):
                yield _Kept(ref, p["object"], _KEPT_BY.get(event.kind, event.kind), event.seq)
            elif event.kind == "rollback.completed" and p.get("before"):
                name = self._name(event, worktrees, f"operations/{p.get('operation', event.operation)}/before")
                yield _Kept(name, p["before"], "the snapshot before a rollback", event.seq)
        yield from of_runs

    def _name(self, event: Event, worktrees: Mapping[str, str], name: str) -> str:
        return run_ref(self.services, event.run or "", name, worktrees.get(event.operation))

    def lost(self) -> Iterator[Symptom]:
        """Yield the done tasks whose commits the branch lost, as after `git reset`."""
        for state in run_lookup.latest_runs(self.services):
            commits = done_work.lost(self.services, state)
            if commits:
                words, fix = done_work.words_of_lost(state, commits), f"idumb resume {state.phase}"
                yield health.warn(words, means="these tasks are not done any more", fix=fix)

    def unknown(self) -> Iterator[Symptom]:
        """Yield the tasks that commits name as done and a restored log does not know. Commits outlive the log."""
        restored = any(self.services.log.events(kind="log.restored", limit=1))
        for state in run_lookup.latest_runs(self.services) if restored else ():
            for task, commit in _unrecorded(self.services, state).items():
                yield health.warn(
                    f"{task} is not done in the event log, and commit {commit[:12]} names it as done",
                    means="resume would build it again",
                    fixes=True,
                    subject=f"{state.phase} {task}",
                )

    def accept(self, symptom: Symptom) -> str:
        """Record as accepted work what a commit's trailers say, since its evidence is lost."""
        phase, task = symptom.subject.split(" ")
        with operation.owned(self.services, "doctor") as owned:
            state = run_lookup.latest_run(self.services, phase)
            commit = None if state is None else _unrecorded(self.services, state).get(task)
            if state is None or commit is None:
                return f"{task} was recorded meanwhile"
            journal = owned.journal(state)
            reason = f"commit {commit[:12]} names it as done; its events and evidence were lost with the event log"
            journal.append("task.accepted", task, reason=reason, by="idumb doctor", commit=commit)
        return f"{task} is done: {reason}"


def _unrecorded(services: Services, state: RunState) -> dict[str, str]:
    """Return tasks of a run with their commits that no event names; what was rolled back since does not count."""
    events = services.log.events(run=state.id)
    known = {event.payload[name] for event in events for name in ("commit", "git_hash") if name in event.payload}
    commits = services.history.trailers_since(state.base.commit)
    of_run = [(commit, trailers) for commit, trailers in commits if trailers.get("Idumb-Run") == state.id]
    left = {id for id, task in state.tasks.items() if task.status not in outcome.DONE and not task.attempt.running}
    by_task = [*recorded_elsewhere.commits_of_tasks(of_run).items()]
    return {task: commit for task, commit in reversed(by_task) if task in left and commit not in known}


def _gone(kept: _Kept) -> Symptom:
    return health.problem(
        f"{kept.name} is lost: object {kept.commit} is missing or damaged",
        kept.ref,
        means="idumb cannot restore it; the task's commit on the branch may still have its files",
        fix="git fsck --connectivity-only, or fetch the object from a backup",
    )


class _Projections(Struct, frozen=True):
    """`texts` caches what the files should hold, by path, for one head of the log."""

    services: Services
    texts: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)

    def look(self) -> Iterator[Symptom]:
        """Yield each file that the log contradicts. A running command writes them later than the log."""
        if self.services.owner.holder() is not None:
            return
        for path, text in self._expected().items():
            why = self._differs(path, text)
            if why:
                yield health.warn(why, path, means="it can be rebuilt from the event log; nothing is lost", fixes=True)

    def rebuild(self, symptom: Symptom) -> str:
        """Rebuild a file from the log, after a backup of the present one. If that cannot be read, this raises."""
        services, path = self.services, symptom.path
        text = self._expected().get(path)
        if text is None:
            return f"{path} was left unchanged: the event log no longer describes it"
        present = services.files.read(path)
        kept = ""
        if present:
            data = present.encode("utf-8", "surrogateescape")
            kept = f"; the previous file is in {services.backups.keep(projections.SET_ASIDE, path, data)}"
        services.files.write(path, text)
        return f"{path} rebuilt from the log{kept}"

    def _expected(self) -> dict[str, str]:
        """Return, by path, the text of every file in `.idumb/brain` that the log describes."""
        head = self.services.log.head()
        if head not in self.texts:
            self.texts.clear()
            self.texts[head] = dict(self._render())
        return self.texts[head]

    def _render(self) -> Iterator[tuple[str, str]]:
        services = self.services
        for state in run_lookup.latest_runs(services):
            contract = loading.find_locked_contract(services, state)
            if contract is not None:
                text = services.documents.progress(state, schedule.statuses(contract, state))
                yield progress_path(state.phase), text
        yield from self._documents().items()
        for document in handoff_writer.all_handoffs(services):
            yield handoff_writer.path(document), services.documents.handoff(document)
        whole = state_file.text(services)
        if whole is not None:
            yield STATE_FILE, whole

    def _documents(self) -> dict[str, str]:
        """Return, by path, the text of the documents about tasks; a later run replaces those of an earlier one."""
        documents: dict[str, str] = {}
        branch = self.services.history.head().branch
        for run in state_file.runs_here(self.services):
            state = run_lookup.run_of(self.services, run)
            # The documents of another branch are on that branch. Written here, they would block a checkout.
            in_files = state.branch == branch and not state.reports_in_log
            contract = loading.find_locked_contract(self.services, state) if in_files else None
            if contract is None:
                continue
            documents.update(projections.handovers(self.services, state, contract))
            for path, text in projections.checkpoints(self.services, state, contract, contract.order):
                if text is None:
                    documents.pop(path, None)
                else:
                    documents[path] = text
        return documents

    def _differs(self, path: str, expected: str) -> str:
        """Return how a file differs from the log; "" if it does not. Git may have converted its line endings."""
        try:
            text = self.services.files.read(path)
        except OSError:
            text = ""
        if text is None:
            return "the file is missing"
        expected = self.services.redactor.redact(expected)
        return "" if expected in (text, text.replace("\r\n", "\n")) else "the file differs from the event log"
