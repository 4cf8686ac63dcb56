"""A small phase and runs of it, built by replaying events like the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from idumb.app.core import schedule
from idumb.domain import contract as contracts
from idumb.domain.contract import Contract
from idumb.domain.plans.plan import Criterion, FileClaim, Invariant, Option, Plan, Task, TestIntent
from idumb.domain.runs import replay, run
from idumb.domain.runs.event import GENESIS, Event
from idumb.domain.settings import Settings
from tests.support import run_events

RUN = "0123456789abcdef"
COMMIT = "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d"
TREE = "f" * 40
NASTY = 'a | b `c`\n<script>alert("x")</script> [x](http://y) \x1b[31mred\u202e'


def task(task_id: str, *needs: str, title: str = "", **fields: Any) -> Task:
    acceptance = fields.pop("acceptance", (Criterion("AC-1", "it works", "check", "true"),))
    return Task(id=task_id, title=title or f"Title of {task_id}", depends_on=needs, acceptance=acceptance, **fields)


def phase(*tasks: Task, number: str = "1", **fields: Any) -> Contract:
    path = f".planning/phases/{number}/01-PLAN.md"
    plan = Plan(path, "ab" * 32, number, "01", "Slugs", "Stable addresses", tasks=tasks, **fields)
    assembled, findings = contracts.assemble(number, f".planning/phases/{number}", (plan,), Settings())
    assert assembled is not None, findings
    return assembled


def slugs(title: str = "Unique slugs") -> Contract:
    """T1-01 <- T1-02 <- T1-03, and T1-04 and T1-05 apart."""
    return phase(
        task(
            "T1-01",
            title="Slug function",
            requirements=("REQ-1",),
            files=(FileClaim("create", "src/slug.py"),),
            tests=(TestIntent("pytest -q", "fails", "passes", "titles become slugs"),),
            estimate=1,
        ),
        task(
            "T1-02",
            "T1-01",
            title=title,
            requirements=("REQ-2",),
            acceptance=(
                Criterion("AC-1", "two articles differ", "check", "pytest -q -k unique"),
                Criterion("AC-2", "nothing else breaks", "verify"),
                Criterion("AC-3", "it reads well", "opinion"),
                Criterion("AC-4", "it is fast", "unproven"),
            ),
            verify=("pytest -q",),
        ),
        task("T1-03", "T1-02", title="Addresses in the site map"),
        task("T1-04", title="Documentation"),
        task("T1-05", "T1-04", title="Choose a name", kind="decision", options=(Option("a", "slug"),)),
        requirements={"REQ-1": "lower-case ASCII", "REQ-2": "unique", "REQ-9": "nobody does this"},
        invariants=(Invariant("INV-1", "the package imports", "python -c 'import blog'"),),
        success_criteria=(Criterion("SC-1", "the whole suite passes", "check", "pytest -q"),),
    )


class Log:
    """Events in order; `state` is their replay."""

    def __init__(self, contract: Contract, base: str | None = COMMIT) -> None:
        self.contract = contract
        self.events: list[Event] = []
        self.add(
            "run.started",
            **{
                **run_events.STARTED,
                "phase": contract.phase,
                "contract_hash": contract.hash,
                "plans": [[p.path, p.sha256] for p in contract.plans],
                "base_commit": base,
                "base_tree": TREE,
                "branch": "main",
                "tasks": [[i, contracts.task_digest(contract.tasks[i])] for i in contract.order],
            },
        )

    def add(self, kind: str, task_id: str | None = None, attempt: int | None = None, /, **payload: Any) -> Event:
        seq = len(self.events) + 1
        at = f"2026-01-02T03:{seq // 60:02d}:{seq % 60:02d}.000000Z"
        event = Event(seq, "op", RUN, task_id, attempt, kind, payload, 1, 1, at, GENESIS, GENESIS)
        self.events.append(event)
        return event

    def evidence(self, task_id: str | None, subject: str, result: str, attempt: int = 1, **more: Any) -> Event:
        payload = {
            "text": "",
            "command": "pytest -q",
            "exit_code": 0 if result == "passed" else 1,
            "output": "",
            "output_sha256": "cd" * 32,
            "truncated": False,
            "tree": TREE,
            "seconds": 0.5,
        }
        return self.add(
            "evidence.recorded", task_id, attempt, **{**payload, "subject": subject, "result": result, **more}
        )

    def attempt(
        self, task_id: str, ended: str, files: Sequence[str] = (), number: int = 1, seconds: float = 0.8, **more: Any
    ) -> None:
        done = ended == "completed"
        self.add("attempt.started", task_id, number, base=TREE, snapshot="5" * 40)
        self.add(
            "attempt.finished",
            task_id,
            number,
            **{
                **run_events.FINISHED,
                "outcome": ended,
                "left": TREE,
                "touched": list(files),
                "seconds": seconds,
                **more,
            },
        )
        self.add(
            "checkpoint.recorded",
            task_id,
            number,
            status="completed" if done else "failed",
            git_hash=COMMIT,
            snapshot="5" * 40,
            tree=TREE,
            files=list(files),
            seconds=seconds,
            error=None if done else more.get("reason", "it failed"),
            commit=COMMIT if done else None,
        )

    def complete(self, task_id: str, *files: str, **more: Any) -> None:
        self.attempt(task_id, "completed", files, **more)
        self.add("task.completed", task_id)

    def fail(self, task_id: str, reason: str, *files: str, **more: Any) -> None:
        self.attempt(task_id, "failed", files, reason=reason, **more)
        self.add("task.failed", task_id, reason=reason)

    @property
    def state(self) -> run.RunState:
        return replay.replay(self.events)

    @property
    def statuses(self) -> dict[str, str]:
        return schedule.statuses(self.contract, self.state)

    @property
    def evidence_by_task(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """Payloads of the last attempt of each task, as the engine hands them over."""
        evidence: dict[str, list[Mapping[str, Any]]] = {}
        last = {task: task_state.attempt.number for task, task_state in self.state.tasks.items()}
        for event in self.events:
            if event.kind == "evidence.recorded" and (event.task is None or event.attempt == last[event.task]):
                evidence.setdefault(event.task or "", []).append(event.payload)
        return evidence


def record(contract: Contract, **changes: Any) -> dict[str, Any]:
    """Return verify-work's record of `slugs()`, with everything proven but an opinion and an unproven criterion."""
    checks = (
        ("SC-1", "the whole suite passes", "pytest -q"),
        ("invariant INV-1", "the package imports", "python -c 'import blog'"),
        ("T1-01 test 1", "titles become slugs", "pytest -q"),
    )
    return {
        "status": "passed",
        "reason": "every check passed",
        "tree": TREE,
        "evidence": [
            {"subject": s, "text": t, "command": c, "result": "passed", "exit_code": 0, "output": "", "seconds": 0.1}
            for s, t, c in checks
        ],
        "requirements": [
            {
                "id": requirement,
                "text": text,
                "tasks": [
                    {"id": t.id, "status": "completed", "proofs": contracts.proofs(t)}
                    for t in contract.tasks.values()
                    if requirement in t.requirements
                ],
                "met": requirement != "REQ-9",
            }
            for requirement, text in contract.plans[0].requirements.items()
        ],
        "goals": {contract.plans[0].path: "Stable addresses"},
        "mismatches": [],
        "unproven": [],
        "opinions": [],
        "skipped": [],
        "accepted": {},
        **changes,
    }


def partial_run() -> Log:
    """T1-01 done, T1-02 failed in its second attempt (T1-03 blocked), T1-04 done, T1-05 waiting."""
    log = Log(slugs())
    log.evidence("T1-01", "AC-1", "passed")
    log.complete("T1-01", "src/slug.py", "tests/test_slug.py", seconds=75.0)
    log.attempt("T1-02", "failed", ["src/models.py"], reason="AC-1 failed")
    log.evidence("T1-02", "AC-1", "failed", 1, output="old output\n")
    log.evidence("T1-02", "AC-1", "failed", 2, command="pytest -q -k unique", output="E  two are equal\n1 failed\n")
    log.fail("T1-02", "no attempt is left", "src/models.py", number=2, deviations=["undeclared file: notes.txt"])
    log.complete("T1-04", "README.md")
    log.add("decision.asked", "T1-05", id="d1", task="T1-05", kind="decision", what="Which name?", why="", choices=[])
    log.add("task.waiting", "T1-05", reason="waits for an answer", decisions=["d1"])
    log.add("run.failed", reason="T1-02 failed")
    return log
