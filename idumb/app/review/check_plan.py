"""Check the plans of a phase, and show their graph. Writes nothing, and runs nothing except with `--run-checks`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from idumb.app.consent import needs, phase_grants
from idumb.app.contract import contract_versions, loading, plan_checks, run_lock
from idumb.app.contract.loading import Loaded
from idumb.app.core import actions, run_lookup, schedule
from idumb.app.core.services import Result, Services
from idumb.domain import contract as contracts
from idumb.domain import errors, whole_numbers
from idumb.domain.action import Action
from idumb.domain.contract import Contract
from idumb.domain.errors import InputError, Refusal
from idumb.domain.finding import ERROR, Finding, first_of_each
from idumb.domain.finding import errors as only_errors
from idumb.domain.intake import self_check
from idumb.domain.plans import graph, phase_ids
from idumb.domain.plans.plan import STRICT
from idumb.domain.runs.run import RunState


def check(
    services: Services, phase: str, *, expected: str | None = None, mode: str | None = None, run_checks: bool = False,
    only: str | None = None,
) -> Result:  # fmt: skip
    """Return all findings of format, graph and intake, and the `consent_hash` for `--approve`.

    `expected` is a hash that the phase, its contract or its only plan must have; Refusal `plan.other-hash` otherwise.
    `mode` strict judges a guided phase as if it were strict. `run_checks` also runs the checks of unfinished tasks, if
    the plans have no error. `only` is the path of the plan whose findings are returned; its phase is read as a whole.
    """
    loaded = loading.load_phase(services, phase)
    data = _read(loaded, phase, expected, only)
    reports = services.settings.commits_reports_of(phase)
    data["untracked"] = run_lock.uncommitted_inputs(services, loaded.paths, reports=reports)
    case = None if loaded.contract is None else plan_checks.case(services, loaded, loaded.contract, mode)
    present = None if case is None else case.present
    unsorted = [*plan_checks.findings(services, loaded, mode, present), *_unusable_agents(services, loaded.contract)]
    if run_checks and loaded.contract is not None and not only_errors(unsorted):
        from idumb.app.review import checks_before_work  # most checks of plans run nothing

        ran = checks_before_work.run(services, loaded.contract, strict=STRICT in (mode, loaded.contract.mode))
        data["ran"] = ran.rows
        unsorted += ran.findings
    if only is not None:
        unsorted = [finding for finding in unsorted if finding.path == only or finding.path not in loaded.paths]
    findings = sorted(unsorted, key=lambda f: (f.path, f.line, f.column))
    if case is not None:
        data |= _contract_fields(services, case.contract)
        # Only what was consented to has run, so that no other log is read.
        agreed = services.consent.grants(case.contract.phase)
        newest = run_lookup.latest_run(services, case.contract.phase) if agreed else None
        data["verified"] = bool(agreed) and contract_versions.is_verified(newest, case.contract)
        data |= {"next": [actions.NEXT]} if data["verified"] else {}
        data["mode"] = STRICT if mode == STRICT else case.contract.mode
        data["self_check"] = [answer.as_dict() for answer in self_check.answers(case, findings)]
        unjudged = self_check.open_questions(case, findings)
        data["open_questions"] = [{"id": question.id, "question": question.question} for question in unjudged]
    return _result(phase, data, findings)


def check_file(services: Services, path: str, *, expected: str | None = None, mode: str | None = None) -> Result:
    """Return the findings of one plan that is in no phase folder, so that it cannot run where it is."""
    loaded = loading.load_file(services, path)
    data = {**_read(loaded, path, expected, None), "untracked": None}
    findings = sorted(plan_checks.findings(services, loaded, mode), key=lambda f: (f.path, f.line, f.column))
    return _result(path, data, findings)


def _read(loaded: Loaded, name: str, expected: str | None, only: str | None) -> dict[str, Any]:
    """Return how each plan was read, with its tasks and what each of them waits for. Refuses another hash."""
    hashes = contracts.source_hashes(loaded.sources)
    plans = loaded.contract.plans if loaded.contract is not None else loaded.drafts
    needed = contracts.effective_dependencies(plans)
    data: dict[str, Any] = {"phase": name, "folder": loaded.folder, "plans": list(loaded.paths)}
    data |= {"plan_hashes": hashes, "phase_hash": contracts.hash_of_sums(hashes.items())}
    data["read"] = []
    for path, parsed in loaded.parsed:
        if only in (None, path):
            plan = parsed.plan or parsed.draft
            tasks = [] if plan is None else [task.id for task in plan.tasks]
            depends = {id: list(dict.fromkeys(needed.get(id, ()))) for id in tasks}
            data["read"].append({"path": path, "dialect": parsed.dialect, "tasks": tasks, "depends_on": depends})
    _require_hash(expected, name, data, loaded.contract)
    return data


def _unusable_agents(services: Services, contract: Contract | None) -> Iterator[Finding]:
    """Yield a finding for each binding that cannot start until the configuration changes."""
    for name, problem in () if contract is None else needs.unusable(services, contract, missing=True):
        line, column = services.setting_place("bindings", name)
        place = (run_lock.CONFIGURATION, line, column, f"bindings.{name}", name)
        accepted = "a binding as in idumb help agents"
        yield Finding(problem.code, ERROR, *place, accepted, problem.message, problem.hint or "")


def _require_hash(expected: str | None, phase: str, data: dict[str, Any], contract: Contract | None) -> None:
    """Refuse if neither phase, contract nor plan has the expected hash."""
    hashes = {"phase": data["phase_hash"]} | ({"contract": contract.hash} if contract else {})
    if len(data["plan_hashes"]) == 1:
        hashes |= {"plan": next(iter(data["plan_hashes"].values()))}
    if expected is None or expected.lower() in hashes.values():
        return
    raise Refusal(
        "plan.other-hash",
        f"Phase {phase} does not have the hash {expected[:16]}: its plans or the configuration differ.",
        hint=Action.of("check-plan", phase),
        details={"phase": phase, "expected": expected, "found": hashes},
    )


def _contract_fields(services: Services, contract: Contract) -> dict[str, Any]:
    return {
        "phase": contract.phase,
        "tasks": len(contract.tasks),
        "contract_hash": contract.hash,
        "consent_hash": needs.of_run(services, contract).digest,
        "plan_versions": {plan.path: plan.version for plan in contract.plans if plan.version},
        "next_free_id": next_free_id(contract),
        "consent": not phase_grants.PhaseGrants(services, contract).missing(
            needs.of_work(services, contract), plain=True
        ),
        "settings_hash": contracts.governing_settings(contract.plans, services.settings).digest(),
        "policy_hash": services.policy.digest,
        "approval": phase_grants.newest_approval(services, contract),
        "limits": {scope: ceiling.words for scope, ceiling in services.settings.ceilings.items() if ceiling.words},
        "run_command": phase_ids.run_command(contract.phase),
    }


def _result(phase: str, data: dict[str, Any], findings: Sequence[Finding]) -> Result:
    wrong = only_errors(findings)
    listed = [finding.as_dict() for finding in first_of_each(findings)]
    data |= {"findings": listed, "errors": len(wrong), "warnings": len(findings) - len(wrong)}
    if not wrong:
        return Result(data)
    words = f"{len(wrong)} error{'s' * (len(wrong) != 1)} in phase {phase}"
    return Result(
        data,
        errors.EXIT_INVALID,
        (),
        ("plan.invalid", words, f"Correct {wrong[0].place} first, then idumb check-plan {phase}"),
        {"phase": phase, "evidence": [f"{finding.place}: {finding.message}" for finding in wrong[:50]]},
    )


def next_free_id(contract: Contract) -> str:
    """Return an unused id for a new task of the phase."""
    if phase_ids.step_plan_path(contract.phase) is not None:
        return phase_ids.step_task_id(contract.phase, len(contract.tasks) + 1)
    used = [m[1] for t in contract.tasks if (m := re.search(r"-(\d+)[a-z]?$", t))]
    return f"T{contract.phase}-{whole_numbers.next_free(used):02d}"


def show_graph(services: Services, phase: str, render: Callable[[Contract, Mapping[str, str] | None], str]) -> Result:
    """Return order, waves and edges, and the text that `render` returns, which has the statuses of the newest run."""
    loaded = loading.load_phase(services, phase)
    contract = loaded.contract
    if contract is None:
        raise InputError(
            "plan.invalid",
            f"The plans of phase {phase} have errors, so there is no graph.",
            findings=loaded.findings,
            hint=Action.of("check-plan", phase),
            details={"phase": phase},
        )
    state = run_lookup.latest_run(services, contract.phase)
    current = state if state is not None and set(state.tasks) >= set(contract.order) else None
    statuses = schedule.statuses(contract, current or RunState())
    waves = graph.waves(contract.dependencies, contract.order)
    return Result(
        {
            "phase": contract.phase,
            "order": list(contract.order),
            "waves": [list(w) for w in waves],
            "edges": [[d, t] for t in contract.order for d in contract.dependencies[t]],
            "status": statuses,
            "text": render(contract, statuses if current is not None else None),
        }
    )
