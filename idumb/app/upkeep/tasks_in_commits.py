"""A check of `idumb doctor`: tasks that commits name as done and a restored event log does not know.

Commits outlive the log. What their trailers say is recorded as accepted work, since its evidence is lost.
"""

from __future__ import annotations

from collections.abc import Iterator

from idumb.app.core import run_lookup
from idumb.app.core.services import Services
from idumb.app.session import operation
from idumb.domain import health, outcome
from idumb.domain.health import Check, Symptom
from idumb.domain.runs.run import RunState

_LOST = "commit {commit} names it as done; its events and evidence were lost with the event log"


def check(services: Services) -> Check:
    def look() -> Iterator[Symptom]:
        for state in run_lookup.latest_runs(services) if _is_restored(services) else ():
            for task, commit in unrecorded(services, state).items():
                yield health.warn(
                    f"{task} is not done in the event log, and commit {commit[:12]} names it as done",
                    means="resume would build it again",
                    fixes=True,
                    subject=f"{state.phase} {task}",
                )

    def take(symptom: Symptom) -> str:
        phase, task = symptom.subject.split(" ")
        with operation.owned(services, "doctor") as owned:
            state = run_lookup.latest_run(services, phase)
            commit = unrecorded(services, state).get(task) if state is not None else None
            if state is None or commit is None:
                return f"{task} was recorded meanwhile"
            journal = owned.journal(state)
            reason = _LOST.format(commit=commit[:12])
            journal.write(journal.event("task.accepted", task, reason=reason, by="idumb doctor", commit=commit))
        return f"{task} is done: {reason}"

    return Check("log.commits", "every task that a commit names as done is done", look, take, alone=True)


def unrecorded(services: Services, state: RunState) -> dict[str, str]:
    """Return tasks of a run with their commits that no event names; what was rolled back since does not count."""
    events = services.log.events(run=state.id)
    known = {event.payload[name] for event in events for name in ("commit", "git_hash") if name in event.payload}
    found: dict[str, str] = {}
    for commit, trailers in services.history.trailers_since(state.base.commit):
        if trailers.get("Idumb-Run") != state.id or commit in known:
            continue
        if "Idumb-Rollback" in trailers or "Idumb-Undo" in trailers:
            break
        name = trailers.get("Idumb-Task", "")
        task = state.tasks.get(name)
        if task is not None and task.status not in outcome.DONE and not task.attempt.running:
            found.setdefault(name, commit)
    return dict(reversed(found.items()))


def _is_restored(services: Services) -> bool:
    return any(services.log.events(kind="log.restored", limit=1))
