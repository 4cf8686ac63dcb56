"""The view of all phases that status, next and roadmap show: the state of each, and the next command."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from msgspec.structs import replace

from idumb.app.contract import changed_contract, contract_versions, loading
from idumb.app.contract.loading import Loaded
from idumb.app.core import actions, kept_runs, open_attempt, run_lookup, schedule
from idumb.app.core.actions import Situation
from idumb.app.core.services import Services, fields
from idumb.app.session import next_steps
from idumb.app.verify import recorded_elsewhere
from idumb.app.worktree import done_work, preconditions
from idumb.domain import agent, finding, outcome, whole_numbers, wording
from idumb.domain.action import Action, plain
from idumb.domain.contract import Contract
from idumb.domain.errors import IdumbError
from idumb.domain.plans import phase_ids
from idumb.domain.runs.run import ACTIVE, CLOSED, DROPPED, FAILED, HALTED, INTERRUPTED, RunState

SHOWN = 20
CONSENT = "consent"


def view(services: Services) -> dict[str, Any]:
    """Return the view as JSON-serialisable data. Long lists are cut, with the number of omitted entries."""
    initialised = services.files.exists(".idumb/config.yaml")
    inner = () if initialised else tuple(services.inner_projects)
    titles = {phase.number: phase.title for phase in services.plans.roadmap()}
    folders = {
        number: folder for number, folder in services.plans.phases() if not _is_verified_and_written(services, number)
    }
    # `1` of the roadmap and `01` of a folder are one phase, in the spelling of the folder.
    numbers = {_phase_key(number): number for number in (*titles, *folders)}
    found = [_phase(services, n, titles.get(n, ""), folders.get(n)) for _, n in sorted(numbers.items())]
    # What idumb wrote itself is not listed once it is done, here or elsewhere.
    found = [each for each in found if not (phase_ids.is_numbered(each.row["phase"]) and _is_done(each.row))]
    found += [_phase(services, n, "", phase_ids.step_plan_reports(n)) for n in _step_plans(services)]
    phases = [each.row for each in found]
    questions = open_questions(services)
    by_phase = {row["phase"]: row for row in phases}
    for question in questions:
        if question.get("phase") in by_phase:
            by_phase[question["phase"]]["decisions"].insert(0, question)
    others = [question for question in questions if question.get("phase") not in by_phase]
    following, why, phase = _next(found, others, initialised=initialised)
    row = {"command": None, "tool": None} if following is None else following.row()
    if inner:
        why, command = preconditions.elsewhere(services)
        row = {"command": command, "tool": None}
    shown = {
        "initialised": initialised,
        "phases": phases,
        "decisions": others,
        "kept": kept_runs.counts(services),
        "next": {**({} if phase is None else {"phase": phase}), **row, "why": why},
    }
    return {key: plain(value) for key, value in shown.items()}


def lists_consent(view: Mapping[str, Any]) -> bool:
    """Return whether the view contains a question about consent, which is valid only at this moment."""
    questions = [*view["decisions"], *(question for row in view["phases"] for question in row["decisions"])]
    return any(question["kind"] == CONSENT for question in questions)


def open_questions(services: Services) -> list[dict[str, Any]]:
    """Return open questions about consent and plans, with shortened evidence. `idumb decisions` shows all of it."""
    rows: list[dict[str, Any]] = []
    with suppress(IdumbError):  # a command that starts something reports why consent cannot be read
        if services.consent.questions():
            from idumb.app.running import decisions  # only pending consent needs it

            rows += decisions.consent_questions(services)
    if any(event.run is None for event in services.log.events(kind="decision.asked")):
        from idumb.app.planning import plan_questions  # only an open question about a plan needs it

        rows += plan_questions.open_questions(services)
    return [{**row, "evidence": list(row["evidence"])[:SHOWN]} for row in rows]


def _is_verified_and_written(services: Services, phase: str) -> bool:
    """Return whether a plan that idumb wrote is verified, even if the configuration changed since."""
    state = run_lookup.latest_run(services, phase) if phase_ids.is_numbered(phase) else None
    return state is not None and state.verified and state.restoring is None


def _step_plans(services: Services) -> tuple[str, ...]:
    """Return the step plans that ran here and still exist, or have an unfinished run."""
    phases = [phase for phase in services.log.phases() if phase_ids.step_plan_path(phase) is not None]
    return tuple(p for p in phases if services.plans.plans(phase_ids.step_plan_reports(p)) or _is_open(services, p))


def _is_open(services: Services, phase: str) -> bool:
    state = run_lookup.latest_run(services, phase)
    return state is not None and state.state not in CLOSED


def _phase_key(number: str) -> tuple[Any, ...]:
    return tuple(
        (0, *whole_numbers.sort_key(p)) if p.isdigit() else (1, 0, p) for p in re.findall(r"\d+|[A-Za-z]+", number)
    )


class _Phase(NamedTuple):
    """A phase as the view shows it, and the situation that decides its next command."""

    row: dict[str, Any]
    situation: Situation


def _phase(services: Services, number: str, title: str, folder: str | None) -> _Phase:
    row: dict[str, Any] = {
        "phase": number,
        "title": title,
        "folder": folder,
        "state": "not planned",
        "run": None,
        "tasks": {"total": 0},
        "next": [],
        "others": [],
        "more": 0,
        "decisions": [],
    }
    if folder is None or not services.plans.plans(folder):
        planner = services.settings.role(agent.PLANNER).binding is not None
        run = run_lookup.latest_run(services, number)
        if run is not None:
            return _without_plan({**row, "elsewhere": {}, "planner": planner}, run)
        elsewhere = recorded_elsewhere.of_phase(services, number, folder)
        words = f"phase {number} has no plan; or write .planning/phases/{number}/01-PLAN.md"
        situation = Situation(phase=number, standing=actions.UNPLANNED, plans=planner, why=words)
        return _Phase({**row, "elsewhere": elsewhere, "planner": planner}, situation)
    try:
        loaded = loading.load_present(services, number)
    except IdumbError as error:
        return _invalid({**row, "problem": error.message})
    if loaded.contract is None:
        problems = finding.errors(loaded.findings)
        words = f"{problems[0].place}: {problems[0].message}" if problems else ""
        return _invalid({**row, "problem": words, "errors": len(problems)})
    state = run_lookup.latest_run(services, loaded.contract.phase)
    return _planned(services, row, loaded, loaded.contract, state)


def _without_plan(row: dict[str, Any], state: RunState) -> _Phase:
    """Return a phase whose plan was removed after it ran. A phase that is over stays over: many archive such plans."""
    row = {**row, "run": state.id, "open": _open(state)}
    word = "verified" if state.verified else state.state
    if state.restoring is not None or word not in ("verified", DROPPED):
        why = "it has runs, but its plan no longer exists; this shows how to restore it"
        return _Phase(row, Situation(phase=row["phase"], standing=actions.INVALID, why=why))
    tasks = Counter(task.status for task in state.tasks.values())
    row |= {"state": word, "reason": "its plan was removed since", "tasks": {"total": len(state.tasks), **tasks}}
    return _Phase(row, Situation(phase=row["phase"], standing=word, run=state))


def _planned(
    services: Services, row: dict[str, Any], loaded: Loaded, contract: Contract, state: RunState | None
) -> _Phase:
    rewritten = "" if state is None else done_work.mark_lost(services, state)
    if state is not None and state.verified and done_work.is_rewritten(services, state):
        rewritten = "its commits were rewritten since"
    current, statuses = current_run(services, contract, state)
    if state is not None and state.state == DROPPED and _changed_part(contract, state) != "plan":
        current = state  # the configuration may change
    changed = state is not None and current is None
    problems = finding.errors(loading.all_findings(services, loaded)) if current is None else ()
    if problems:  # then nothing can run
        statuses = {t: outcome.PENDING if status == outcome.READY else status for t, status in statuses.items()}
    elsewhere = recorded_elsewhere.of_phase(services, contract.phase, row["folder"]) if state is None else {}
    word = "changed" if changed else "ready"
    if current is not None:
        word = "verified" if current.verified else current.state
    asked = schedule.open_questions(current, services.clock.now()) if current else []
    situation = next_steps.situation(services, contract, current, statuses, asked)
    at_work = (outcome.READY, outcome.RUNNING)
    ready = [t for t in contract.order if statuses[t] in at_work]
    others = [t for t in contract.order if statuses[t] not in (*outcome.UNBLOCKING, *at_work)]
    shown = {
        **row,
        "phase": contract.phase,
        "title": row["title"] or contract.plans[0].title,
        "mode": contract.mode,
        "state": "recorded" if elsewhere else "invalid" if problems else word,
        "elsewhere": elsewhere,
        "run": state.id if state else None,
        "session": state.session if state else None,
        "reason": rewritten or _why_stopped(current, statuses),
        "rewritten": bool(rewritten),
        "changed_since_run": changed,
        "changed_part": _changed_part(contract, state) if changed and state is not None else None,
        "tasks": {"total": len(statuses), **Counter(statuses.values())},
        "next": [_row(contract, t, statuses) for t in ready[:SHOWN]],
        "others": [other_task(contract, current, statuses, t) for t in others[:SHOWN]],
        "blocked": [
            {**group, "tasks": group["tasks"][:SHOWN], "actions": group["actions"][:SHOWN]}
            for group in actions.blocked_groups(contract, current, statuses)[:SHOWN]
        ],
        "more": max(0, len(ready) - SHOWN) + max(0, len(others) - SHOWN),
        "decisions": asked,
        "verification": (current.verification or {}).get("status") if current else None,
        "restoring": _restoring(state),
        "open": _open(state),
        "told": _agent_status(state),
        "editor": next((task for task in ready[:1] if task in situation.in_editor), None),
        "uncommitted": situation.uncommitted,
        "errors": len(problems),
        "problems": [f"{f.place}: {f.message}" for f in problems[:SHOWN]],
    }
    return _Phase(shown, _situation(shown, situation, state))


def _why_stopped(current: RunState | None, statuses: Mapping[str, str]) -> str:
    """Return why a run stopped; "" if it was resumed since, or a person settled what was left to do."""
    if current is None or current.state == ACTIVE:  # a killed run is active, too
        return ""
    return "" if current.state in (FAILED, HALTED) and schedule.is_settled(statuses) else current.reason


def _situation(row: Mapping[str, Any], situation: Situation, state: RunState | None) -> Situation:
    """Return the situation with what the row says of it. `state` is the newest run, perhaps of an earlier contract."""
    if row["problems"]:
        return replace(situation, standing=actions.INVALID, run=None, why=row["problems"][0])
    if row["open"] is not None:
        return replace(situation, opened=row["open"]["task"], why=row["open"]["words"])
    if row["changed_since_run"] and state is not None:
        words = f"continues with the changed {row['changed_part']}"
        first = actions.finishing(state) or _revert_changed(situation.contract, state)
        return replace(situation, standing=actions.CHANGED, restoring=first, why=words)
    if row["elsewhere"]:
        words = f"work was done elsewhere, according to {row['elsewhere']['by']}; this log has none"
        return replace(situation, standing=actions.ELSEWHERE, why=words)
    return replace(situation, rewritten=row["rewritten"], why=row["reason"])


def _revert_changed(contract: Contract | None, state: RunState) -> Action | None:
    """Return the rollback before a new run can start, if the plan changed completed tasks."""
    changed = () if contract is None else changed_contract.done_but_changed(contract, state)
    if not changed:
        return None
    target = changed_contract.rollback_target(state, changed[0])
    words = f"the plan changed {wording.listed(changed)} after completion"
    return Action.of("rollback", state.phase, "--to", target, consequence=words)


def _invalid(row: dict[str, Any]) -> _Phase:
    situation = Situation(phase=row["phase"], standing=actions.INVALID, why=row["problem"])
    return _Phase({**row, "state": "invalid"}, situation)


def _changed_part(contract: Contract, state: RunState) -> str:
    """Return what differs from what the run locked. The policy counts as configuration."""
    same_plans = dict(state.contract.plans) == {plan.path: plan.sha256 for plan in contract.plans}
    return "configuration" if same_plans else "plan"


def _open(state: RunState | None) -> dict[str, object] | None:
    """Return the attempt that is open in an editor. Only submit or give-up ends it."""
    found = None if state is None else open_attempt.of(state)
    return None if found is None else {**found.as_dict(), "words": found.words}


def _agent_status(state: RunState | None) -> dict[str, str] | None:
    """Return the last status that the working agent reported. idumb did not check it."""
    tasks = state.tasks.values() if state is not None else ()
    task = next((task for task in tasks if task.attempt.running and task.attempt.agent_status is not None), None)
    if task is None or task.attempt.agent_status is None:
        return None
    reported = task.attempt.agent_status
    words = f"{task.id}: its {reported.role} reported {reported.state} at {reported.at}"
    return {
        "task": task.id,
        **fields(reported, "role", "state", "message", "at"),
        "words": f"{words}: {reported.message}" if reported.message else words,
    }


def _restoring(state: RunState | None) -> dict[str, str] | None:
    """Return an interrupted rollback or undo, with the command that finishes it."""
    if state is None or state.restoring is None:
        return None
    return {"words": f"{state.restoring['words']} was interrupted", "command": str(actions.finishing(state))}


def current_run(
    services: Services, contract: Contract, newest: RunState | None
) -> tuple[RunState | None, dict[str, str]]:
    """Return the newest run if it runs this contract, or the next command lets it, and the statuses."""
    if newest is not None and (
        contract_versions.is_run_of(newest, contract) or contract_versions.was_agreed(services, newest, contract)
    ):
        return newest, schedule.statuses(contract, newest)
    blank = RunState()  # with what a new run takes over from the run of an earlier plan
    if newest is not None:
        blank.tasks.update({task: newest.tasks[task] for task in changed_contract.carried_tasks(contract, newest)})
    return None, schedule.statuses(contract, blank)


def _row(contract: Contract, task: str, statuses: Mapping[str, str]) -> dict[str, Any]:
    return {"id": task, "title": contract.tasks[task].title, "status": statuses[task]}


def other_task(contract: Contract, state: RunState | None, statuses: Mapping[str, str], task: str) -> dict[str, Any]:
    """Return a task that is not next, with the reason, and commands that unblock it."""
    status, task_state = statuses[task], state.tasks.get(task) if state else None
    why = task_state.reason if task_state else ""
    if status in (outcome.BLOCKED, outcome.PENDING):
        why = actions.why_blocked(contract, state, statuses, task)
    elif status == outcome.WAITING and state is not None:
        asked = [question["id"] for question in schedule.open_questions(state) if question["task"] == task]
        why = f"waits for an answer: {', '.join(asked)}" if asked else why
    row = {**_row(contract, task, statuses), "why": why}
    ways = actions.unblocking(contract, state, statuses, task)
    return {**row, "actions": ways} if ways else row


def _is_done(row: Mapping[str, Any]) -> bool:
    return bool(row["state"] in ("verified", DROPPED) or row.get("elsewhere", {}).get("verification") == "passed")


def _is_dropped(row: Mapping[str, Any]) -> bool:
    """Whether a person ended a quick task: skipped it, or rolled it back. `resume` can still continue it."""
    if phase_ids.QUICK.number_of(row["phase"]) is None or row["decisions"]:
        return False
    return row.get("reason") == "rolled back to start" or bool(row["tasks"].get(outcome.SKIPPED))


def _next(
    found: Sequence[_Phase], questions: Sequence[Mapping[str, Any]], *, initialised: bool
) -> tuple[Action | None, str, str | None]:
    """Return the next command, why, and its phase: what is under way, then what waits for a person, then what can run.

    Quick tasks come first. `questions` belong to no phase: consent to the agents that judge.
    """
    if not initialised:
        return Action("init"), "idumb is not set up here", None
    left = [each for each in found if each.row.get("restoring") or not (_is_done(each.row) or _is_dropped(each.row))]
    first = min(left, key=_rank, default=None)
    if questions and (first is None or _rank(first)[0] > _UNDER_WAY):
        return actions.DECISIONS, f"a question needs an answer: {questions[0]['what']}", None
    if first is not None:
        asked = tuple(question["subject"] for question in first.row["decisions"])
        step = actions.available(replace(first.situation, asked=asked))[0]
        return step, step.consequence, first.row["phase"]
    if not found:
        return None, "no phase is planned; write .planning/phases/1/01-PLAN.md", None
    rows = [each.row for each in found]
    elsewhere = [row["phase"] for row in rows if row["state"] not in (DROPPED, "verified") and not _is_dropped(row)]
    more = f"; {', '.join(elsewhere)} elsewhere, according to reports" if elsewhere else ""
    dropped = " or dropped" if any(row["state"] == DROPPED for row in rows) else ""
    return None, f"every phase is verified{dropped}{more}", None


_UNDER_WAY = 0


def _rank(each: _Phase) -> tuple[int, bool, bool]:
    """Return the rank of a phase among those that are not done; the lowest is next. What goes on here comes first."""
    row = each.row
    under_way = row.get("open") or row.get("restoring") or row["state"] in (ACTIVE, INTERRUPTED)
    rank = _UNDER_WAY if under_way else 1 if row["decisions"] else 2
    return rank, each.situation.back is not None, not phase_ids.is_numbered(row["phase"])
