"""The contract of a phase: all its plans together, checked across plans, with one hash that a person consents to."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from idumb.domain import agent, canonical_json, outcome, paths
from idumb.domain.finding import ERROR, Finding, first_of_each, nearest
from idumb.domain.plans import graph
from idumb.domain.plans.plan import CHANGED, CHECK, STEPS, STRICT, UNPROVEN, VERIFY, Plan, Task, plain
from idumb.domain.proof import ledger
from idumb.domain.settings import Settings

MAX_TASKS = 10_000


class Contract(Struct, frozen=True, dict=True):
    """`order` is the execution order of all tasks of the phase; `hash` is what a person consents to.

    `plan_of` is the plan of each task.
    """

    phase: str
    folder: str
    plans: tuple[Plan, ...]
    tasks: Mapping[str, Task]
    order: tuple[str, ...]
    dependencies: Mapping[str, tuple[str, ...]]
    hash: str

    @property
    def mode(self) -> str:
        return STRICT if any(p.mode == STRICT for p in self.plans) else "guided"

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables that steps and checks get: the inputs of a workflow."""
        return self.plans[0].workflow.variables if self.plans and self.plans[0].workflow is not None else {}

    @functools.cached_property
    def plan_of(self) -> Mapping[str, Plan]:
        return {t.id: p for p in self.plans for t in p.tasks}


def contract_hash(plans: Iterable[Plan], settings: Settings, policy_digest: str | None = None) -> str:
    """Return the SHA-256 over everything that decides what runs: plans (path and SHA-256), configuration and policy."""
    all_plans = tuple(plans)
    digest = governing_settings(all_plans, settings).digest()
    bound: dict[str, Any] = {"plans": [[p.path, p.sha256] for p in all_plans], "settings": digest}
    return canonical_json.digest(bound | ({"policy": policy_digest} if policy_digest else {}))


def governing_settings(plans: Iterable[Plan], settings: Settings) -> Settings:
    """Return the settings that govern a run of these plans, without those that it cannot use."""
    pairs = ((plan, task) for plan in plans for task in plan.tasks)
    binding_names = {name for p, t in pairs for name in (builder_of(p, t, settings), validator_of(p, t, settings))}
    return settings.of_runs(binding_names)


def phase_hash(plans: Iterable[Plan]) -> str:
    """Return the SHA-256 of what `sha256sum` prints for the plans: `sha256sum FOLDER/*-PLAN.md | sha256sum`."""
    return hash_of_sums((p.path, p.sha256) for p in plans)


def source_hashes(sources: Iterable[tuple[str, bytes]]) -> dict[str, str]:
    """Return the SHA-256 of the bytes of each plan, by its path."""
    return {path: hashlib.sha256(data).hexdigest() for path, data in sources}


def hash_of_sums(sums: Iterable[tuple[str, str]]) -> str:
    """Return the phase hash from (path, SHA-256) of each plan, which also works for plans with errors."""
    lines = "".join(f"{sha256}  {path}\n" for path, sha256 in sums)
    return hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()


def assemble(
    phase: str, folder: str, plans: Sequence[Plan], settings: Settings, policy_digest: str | None = None
) -> tuple[Contract | None, tuple[Finding, ...]]:
    """Assemble the contract of a phase. The contract is None if a finding is an error."""
    findings = list(cross_plan_findings(plans))
    tasks = {task.id: task for plan in plans for task in plan.tasks}
    if len(tasks) > MAX_TASKS:
        last, most, found = plans[-1], f"at most {MAX_TASKS}", str(len(tasks))
        findings.append(last.finding("phase.too-many-tasks", "", found, task=last.tasks[-1], accepted=most))
    if any(f.severity == ERROR for f in findings):
        return None, tuple(findings)
    dependencies = effective_dependencies(plans)
    order = graph.topological_order(dependencies)
    hashed = contract_hash(plans, settings, policy_digest)
    contract = Contract(phase, folder, tuple(plans), tasks, order, dependencies, hashed)
    return contract, tuple(findings)


def in_waves(plans: Sequence[Plan]) -> tuple[Plan, ...]:
    """Return the plans with the dependencies that their waves add: a plan waits for every plan of a lower wave.

    A plan never waits for one that its own dependencies make wait for it: `depends_on` is more exact than `wave`.
    """
    if all(plan.wave is None for plan in plans):
        return tuple(plans)
    declared = {plan.plan: plan.depends_on for plan in plans}
    ordered = []
    for plan in plans:
        later = {plan.plan, *graph.dependents(declared, [plan.plan])}
        lower = [p.plan for p in plans if p.wave is not None and plan.wave is not None and p.wave < plan.wave]
        ordered.append(
            replace(plan, depends_on=tuple(dict.fromkeys((*plan.depends_on, *(p for p in lower if p not in later)))))
        )
    return tuple(ordered)


def cross_plan_findings(plans: Sequence[Plan], elsewhere: Collection[str] | None = ()) -> tuple[Finding, ...]:
    """Return the findings between the plans and tasks of a phase, the first hundred of each code.

    The plans may be drafts. `elsewhere` contains the ids of tasks that could not be read; None means that any id can be
    missing.
    """
    task_ids = {task.id for plan in plans for task in plan.tasks} | set(elsewhere or ())
    unknown = [] if elsewhere is None else [*_unknown(plans, task_ids), *_plan_dependencies(plans)]
    cycles = _cycles(plans, task_ids, complete=elsewhere is not None)
    return first_of_each((*_duplicates(plans), *_self_dependencies(plans), *unknown, *cycles))


def _cycles(plans: Sequence[Plan], task_ids: Collection[str], *, complete: bool) -> Iterable[Finding]:
    """Yield cycles, and the tasks that can never start because of one or of an unknown id."""
    of_plans = graph.cycles({plan.plan: plan.depends_on for plan in plans})
    round_ = {plan for cycle in of_plans for plan in cycle}
    first = {plan.plan: plan for plan in reversed(plans)}
    for cycle in of_plans:
        yield first[cycle[0]].finding("plan.cycle", "", " → ".join(cycle), words={"of": " of plans"})
    owner = {task.id: (plan, task) for plan in plans for task in plan.tasks}
    dependencies = effective_dependencies(plans, round_)  # without them, every pair of their tasks would be a cycle
    of_tasks = graph.cycles(dependencies)
    for cycle in of_tasks:
        plan, task = owner[cycle[0]]
        yield plan.finding("plan.cycle", "", " → ".join(cycle), task=task)
    stuck = {task for cycle in of_tasks for task in cycle}
    stuck |= {task.id for plan in plans if plan.plan in round_ for task in plan.tasks}
    for id, needs in dependencies.items():
        if id in needs or (complete and any(dependency not in task_ids for dependency in needs)):
            stuck.add(id)
    dependencies = effective_dependencies(plans)
    waiting = [id for id in graph.dependents(dependencies, stuck) if id not in stuck]
    never = {*waiting, *stuck}
    for id in waiting:
        plan, task = owner[id]
        blocker = next(dependency for dependency in dependencies[id] if dependency in never)
        yield plan.finding("task.unreachable", "", blocker, task=task)


def effective_dependencies(plans: Sequence[Plan], without: Collection[str] = ()) -> dict[str, tuple[str, ...]]:
    """Return each task's dependencies, including all tasks of the plans that its plan depends on, except `without`."""
    by_plan = {p.plan: tuple(t.id for t in p.tasks) for p in plans if p.plan not in without}
    out: dict[str, tuple[str, ...]] = {}
    for plan in plans:
        needed = tuple(t for other in plan.depends_on if other != plan.plan for t in by_plan.get(other, ()))
        for task in plan.tasks:
            out[task.id] = (*task.depends_on, *needed) if needed else task.depends_on
    return out


def _duplicates(plans: Sequence[Plan]) -> Iterable[Finding]:
    first_by_id: dict[str, tuple[Plan, Task]] = {}
    for plan in plans:
        for task in plan.tasks:
            if task.id and task.id in first_by_id and first_by_id[task.id][0] is not plan:
                other, first = first_by_id[task.id]
                words, fix = {"first": f"at {other.path}:{first.span.line}"}, "give this task an unused id"
                yield plan.finding("task.duplicate-id", "id", task.id, task=task, fix=fix, words=words)
            first_by_id.setdefault(task.id, (plan, task))
    numbers: dict[str, Plan] = {}
    for plan in plans:
        if plan.plan in numbers:
            words = {"first": f", first used by {numbers[plan.plan].path}"}
            yield plan.finding("plan.duplicate-id", "plan", plan.plan, words=words)
        numbers.setdefault(plan.plan, plan)


def _self_dependencies(plans: Sequence[Plan]) -> Iterable[Finding]:
    for plan in plans:
        for task in plan.tasks:
            if task.id in task.depends_on:
                yield plan.finding("task.self-dependency", "", task.id, task=task)


_NEAR = 10  # unknown dependencies for which the nearest id is looked for, among all of the phase


def _unknown(plans: Sequence[Plan], task_ids: Collection[str]) -> Iterable[Finding]:
    tasks = ((plan, task) for plan in plans for task in plan.tasks)
    unknown = ((plan, task, id) for plan, task in tasks for id in task.depends_on if id not in task_ids)
    for number, (plan, task, dependency) in enumerate(unknown):
        near = nearest(dependency, [id for id in task_ids if id != task.id]) if number < _NEAR else None
        fix = f"did you mean {near}?" if near else ""
        yield plan.finding("task.unknown-dependency", "", dependency, task=task, accepted=near or "", fix=fix)


def _plan_dependencies(plans: Sequence[Plan]) -> Iterable[Finding]:
    plan_ids = {plan.plan for plan in plans}
    for plan in plans:
        for dependency in plan.depends_on:
            if dependency == plan.plan or dependency not in plan_ids:
                what = "itself" if dependency == plan.plan else f"{dependency}, which is not a plan of this phase"
                near, words = nearest(dependency, plan_ids - {plan.plan}), {"plan": plan.plan, "what": what}
                yield plan.finding("plan.unknown-dependency", "", dependency, accepted=near or "", words=words)


def builder_of(plan: Plan, task: Task, settings: Settings) -> str | None:
    """Return the binding that builds a task: its own, `steps` if it has steps, the plan's, or the default."""
    if task.is_human:
        return "human"
    return task.builder or ("steps" if task.steps else None) or plan.builder or settings.builder


def in_editor(plan: Plan, task: Task, settings: Settings) -> bool:
    """Whether the task's builder works in an editor and calls idumb itself, so that idumb starts no attempt for it."""
    return _adapter_of(plan, task, settings) == agent.EDITOR


def in_place(plan: Plan, task: Task, settings: Settings) -> bool:
    """Whether the task is done in the user's own working tree: by a person, or in an editor."""
    return task.is_human or _adapter_of(plan, task, settings) in agent.BY_PERSON


def _adapter_of(plan: Plan, task: Task, settings: Settings) -> str | None:
    name = builder_of(plan, task, settings)
    binding = settings.bindings.get(name or "")
    return name if binding is None else binding.adapter


def validator_of(plan: Plan, task: Task, settings: Settings) -> str | None:
    return task.validator or plan.validator or settings.validator


def envelope_key(builder: str, validator: str | None) -> str:
    """Return the key of an envelope: the bindings of its builder and its validator."""
    return builder if validator is None else f"{builder} + {validator}"


def proofs(task: Task) -> dict[str, str]:
    """Return the effective proof of each criterion. Verify covers marked criteria; if none is marked, it covers all."""
    marked = any(c.proof != UNPROVEN for c in task.acceptance)
    covered = bool(task.verify)
    return {c.id: VERIFY if covered and not marked else c.proof for c in task.acceptance}


def standing(task: Task, status: str) -> str:
    """Return the status of a task for people: one that was imported as done was never built here."""
    return outcome.DONE_BEFORE if task.is_history and status == outcome.OMITTED else status


def is_checked(plan: Plan, task: Task) -> bool:
    """Whether idumb itself proves the task by a check, and not only by an opinion or a person."""
    own = {CHECK, VERIFY, STEPS, CHANGED} & set(proofs(task).values())
    return bool(own or task.verify or task.tests or task.postconditions or plan.invariants_of(task))


def consent_paths(contract: Contract) -> tuple[str, ...]:
    """Return the declared literal paths that are protected unless declared.

    The consent dialog lists them separately.
    """
    declared = {p for t in contract.tasks.values() for p in ledger.written_paths(t.files)}
    return tuple(sorted(p for p in declared if paths.matches_any(p, paths.PROTECTED_UNLESS_DECLARED)))


def replaced(contract: Contract, done: Collection[str]) -> dict[str, str]:
    """Return the criteria that finished tasks replace, as `T1-01/AC-1`, each with the task that does."""
    finished = frozenset(done)
    return {name: task.id for task in contract.tasks.values() if task.id in finished for name in task.replaces}


def without_replaced(contract: Contract, tasks: Iterable[str], done: Collection[str]) -> list[Task]:
    """Return tasks as the final tree must prove them: without the criteria that finished tasks replace."""
    gone = replaced(contract, done)
    return [
        replace(task, acceptance=tuple(c for c in task.acceptance if f"{task.id}/{c.id}" not in gone))
        for task in map(contract.tasks.__getitem__, tasks)
    ]


def task_digest(task: Task) -> str:
    """Return a digest of the content of a task, independent of its position in the file."""
    return canonical_json.digest({name: value for name, value in plain(task).items() if name != "replaces"})
