"""Reads a phase's plans into a contract, with every finding, or refuses with all of them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from idumb.app.core import next_actions
from idumb.app.core.services import Services, plans_ref
from idumb.app.ports.planning import ParsedPlan, PlanFiles
from idumb.domain import contract as contracts
from idumb.domain.contract import Contract
from idumb.domain.decision import Choice
from idumb.domain.errors import InputError, Refusal
from idumb.domain.finding import ERROR, LATER, WARNING, Finding, errors
from idumb.domain.intake import registry, scope
from idumb.domain.intake.rule import StartState
from idumb.domain.plans import step_plan
from idumb.domain.plans.plan import STRICT, Plan
from idumb.domain.runs.replay import replay
from idumb.domain.runs.run import RunState
from idumb.domain.settings import NO_POLICY, Policy, Settings

_BEGUN = re.compile(
    r"(?:#[ \t]*|\[[^\]\n]?\][ \t]*|\bid[\"']?[ \t]*:[ \t]*[\"']?)[*_`\[(]*(?:Task[ \t]+)?(T[\w.-]*-\d+[a-z]?)"
)
_UNPROVEN = "criterion.unproven"
"""What the format tells of plans that are not legal; of legal plans the checks tell it, by their mode."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """`contract` is None when a finding of the format or the graph is an error.

    `links` and `repositories` are as a `Case` has them. `drafts` are the plans as far as they could be read, where
    there is no contract. `as_agreed` is what they are under the rules of earlier versions, where only newer ones refuse
    them; it counts for plans that were agreed to under those.
    """

    phase: str
    folder: str
    contract: Contract | None
    findings: tuple[Finding, ...]
    paths: tuple[str, ...]
    sources: tuple[tuple[str, bytes], ...] = ()
    policy: Policy = NO_POLICY
    links: Mapping[str, str] = field(default_factory=dict)
    drafts: tuple[Plan, ...] = ()
    repositories: tuple[str, ...] = ()
    as_agreed: Loaded | None = None


def load(plans: PlanFiles, phase: str, settings: Settings, policy: Policy = NO_POLICY) -> Loaded:
    """Parse and assemble; raises only when the phase itself cannot be found or has no plan."""
    folder = _folder(plans, phase)
    sources = plans.plans(folder)
    if not sources:
        raise _no_plan(folder)
    parsed = [(path, plans.parse(data, path, [other for p, other in sources if p != path])) for path, data in sources]
    misplaced = [_misplaced(p.plan, folder) for _, p in parsed if p.plan and not _belongs(plans, p.plan, folder)]
    return assemble(phase, folder, parsed, settings, sources, misplaced, policy=policy)


def _folder(plans: PlanFiles, phase: str) -> str:
    """A phase that only the roadmap names has no plan yet; there is a command that writes one."""
    try:
        return plans.phase_folder(phase)
    except InputError as problem:
        named = next((number for number, _, _ in plans.roadmap() if plans.same_phase(number, phase)), None)
        if problem.code != "phase.not-found" or named is None:
            raise
        raise _no_plan(f".planning/phases/{named}") from problem


def _no_plan(folder: str) -> InputError:
    steps = step_plan.path_in(folder)
    if steps is not None:
        return InputError(
            "phase.no-plan",
            f"There is no step plan {steps} below the repository's root.",
            hint="Name it by its path from there; idumb help step-plans shows one",
            details={"choices": next_actions.rows((_NAMED,))},
        )
    top, _, name = folder.rpartition("/")
    written = f"idumb plan-phase {shlex.quote(name)}" if top == ".planning/phases" else ""
    template = Choice("template", "write a plan to fill in", "a new file, with every field", f"{written} --template")
    by_hand = Choice("write", f"write {folder}/01-PLAN.md yourself", "it is checked before anything of it runs")
    return InputError(
        "phase.no-plan",
        f"No plan in {folder}: no file ends in PLAN.md.",
        hint=f"Write {folder}/01-PLAN.md (idumb help plan-format shows one){f', or {written}' * bool(written)}",
        details={"choices": next_actions.rows((template, by_hand) if written else (by_hand,))},
    )


def _brought_back(commands: str) -> Choice:
    means = "its run can go on; nothing else changes"
    return Choice("bring-back", "bring back the plan that was run", means, commands)


_NAMED = Choice("name", "name it by its path from the repository's root", "its steps are read; nothing is run")


def of(services: Services, phase: str) -> Loaded:
    """The same, by this work tree's services. Where a plan is gone that was run, the hint brings it back."""
    try:
        loaded = present(services, phase)
    except InputError as problem:
        kept = _kept(services, phase) if problem.code == "phase.no-plan" else ""
        if not kept:
            raise
        details = {"choices": [*next_actions.rows((_brought_back(kept),)), *problem.details["choices"]]}
        raise InputError(problem.code, problem.message, hint=kept, details=details) from problem
    return with_links(services, loaded)


def present(services: Services, phase: str) -> Loaded:
    """The plans as they are, without the links; those that a person agreed to keep the rules of that time."""
    loaded = load(services.plans, phase, services.settings, services.policy)
    earlier = loaded.as_agreed
    return earlier if earlier is not None and _agreed(services, earlier.contract) else loaded


def _agreed(services: Services, contract: Contract | None) -> bool:
    """Whether somebody consented to a contract or approved it, or a run was locked under it."""
    if contract is None:
        return False
    if services.consent.given(contract.hash):
        return True
    approvals = services.consent.approvals(contract.phase)
    if any(kept.approval.contract_hash == contract.hash and kept.revoked is None for kept in approvals):
        return True
    run = services.runs.latest(contract.phase)
    state = None if run is None else replay(services.log.events(run=run))
    amending = state.contract.amending if state is not None else None
    return state is not None and contract.hash in (state.contract.hash, (amending or {}).get("to"))


def with_links(services: Services, loaded: Loaded) -> Loaded:
    """With the links below the folders that the contract writes to, and repositories that its paths may lie in."""
    if loaded.contract is None:
        return loaded
    links = services.files.links(scope.folders(loaded.contract))
    places = {*scope.places(loaded.contract), *(target for target in links.values() if not target.startswith("/"))}
    return replace(loaded, links=links, repositories=services.history.repositories(places))


def _kept(services: Services, phase: str) -> str:
    """The commands that bring back the plans of the newest run; "" where there was none."""
    run = services.runs.latest(step_plan.phase_of(phase) or phase)
    if run is None:
        return ""
    state = replay(services.log.events(run=run))
    ref = plans_ref(services, run, state.contract.version)
    there = {path.rsplit("/", 1)[-1]: path for path, _ in state.contract.plans}
    names = services.trees.kept_blobs(ref)
    shown = ((shlex.quote(f"{ref}:{name}"), shlex.quote(there[name])) for name in names if name in there)
    return "; ".join(f"git show {kept} > {path}" for kept, path in shown)


def locked(services: Services, state: RunState, folder: str) -> Loaded:
    """The plans as the run locked them last, whatever the files say now; under the present configuration."""
    ref = plans_ref(services, state.id, state.contract.version)
    kept = services.trees.kept_blobs(ref)
    if not kept:
        raise Refusal(
            "plan.kept-gone",
            f"The plans of run {state.number} as they were locked are kept under {ref}, and that is gone.",
            hint=f"git update-ref {ref} COMMIT, with the one that git fsck --unreachable --no-reflogs names for it",
        )
    names = {path.rsplit("/", 1)[-1]: path for path, _ in state.contract.plans}
    sources = [(names.get(name, f"{folder}/{name}"), services.trees.read(blob)) for name, blob in kept.items()]
    loaded = _of_sources(services, state.phase, folder, sources)
    return loaded.as_agreed or loaded


def contract_of(services: Services, state: RunState) -> Contract:
    """The contract as the run locked it last, whatever became of the plans since."""
    folder = step_plan.folder_of(state.phase)
    if step_plan.path_of(state.phase) is None and state.contract.plans:
        folder = state.contract.plans[0][0].rpartition("/")[0]
    contract = locked(services, state, folder).contract if state.contract.plans else None
    if contract is None:
        raise InputError(
            "plan.invalid",
            f"The locked plan of {state.phase} cannot be read any more.",
            hint="idumb doctor",
            details={"phase": state.phase},
        )
    return contract


def of_sources(services: Services, phase: str, folder: str, sources: Sequence[tuple[str, bytes]]) -> Loaded:
    """The contract that these bytes would be, under the present configuration and policy.

    What plans that were agreed to say in the same words is refused by no rule that came later.
    """
    loaded = _of_sources(services, phase, folder, sources)
    if loaded.as_agreed is None:
        return loaded
    try:
        known = present(services, phase)
    except InputError:
        return loaded
    agreed = {(f.path, f.code, f.found) for f in known.findings} if known.contract is not None else set()
    later = [f for f in errors(loaded.findings) if f.code in LATER]
    return loaded.as_agreed if all((f.path, f.code, f.found) in agreed for f in later) else loaded


def _of_sources(services: Services, phase: str, folder: str, sources: Sequence[tuple[str, bytes]]) -> Loaded:
    parsed = [(path, services.plans.parse(data, path)) for path, data in sources]
    return assemble(phase, folder, parsed, services.settings, sources, policy=services.policy)


def assemble(
    phase: str,
    folder: str,
    parsed: Sequence[tuple[str, ParsedPlan]],
    settings: Settings,
    sources: Sequence[tuple[str, bytes]] = (),
    more: Sequence[Finding] = (),
    policy: Policy = NO_POLICY,
) -> Loaded:
    findings = [*(f for _, p in parsed for f in p.findings), *more]
    good: list[Plan] = [p.plan for _, p in parsed if p.plan is not None]
    findings += [_wrong_phase(plan, good[0]) for plan in good if plan.phase != good[0].phase]
    contract: Contract | None = None
    if len(good) == len(parsed) and not errors(findings):
        contract, found = contracts.assemble(good[0].phase, folder, good, settings, policy.digest)
        findings += found
    else:
        findings += _across(parsed)
    if contract is not None:
        findings = [f for f in findings if f.code != _UNPROVEN]
    paths = tuple(path for path, _ in parsed)
    earlier = None
    if contract is None and any(p.plan is None for _, p in parsed):
        agreed = [(path, p.as_agreed) for path, p in parsed]
        if all(p.plan is not None for _, p in agreed):
            earlier = assemble(phase, folder, agreed, settings, sources, more, policy)
    drafts = () if contract else tuple(draft for _, p in parsed if (draft := p.plan or p.draft) is not None)
    kept = tuple(sources)
    return Loaded(phase, folder, contract, tuple(findings), paths, kept, policy, drafts=drafts, as_agreed=earlier)


def _across(parsed: Sequence[tuple[str, ParsedPlan]]) -> tuple[Finding, ...]:
    """What can be said of the graph although something else is wrong, and nothing that only follows from that."""
    drafts = [draft for _, p in parsed if (draft := p.plan or p.draft) is not None]
    if len(drafts) < len(parsed):
        return contracts.cross_plan_findings(drafts, None)
    begun = {id for _, p in parsed if p.plan is None for id in _BEGUN.findall(p.text)}
    return contracts.cross_plan_findings(drafts, begun)


def judged(
    services: Services, loaded: Loaded, mode: str | None = None, present: StartState | None = None
) -> list[Finding]:
    """Every finding: of format and graph, and of the checks, by the mode of the plans or a stricter one.

    What is said of a plan's words stops no plan whose words were approved or locked before: there it is a warning.
    """
    found = _judged(services, loaded, mode, present)
    worded = [one for one in found if one.severity == ERROR and one.code in registry.OF_WORDS]
    kept = _agreed_words(services, loaded, worded) if worded else frozenset()
    return [replace(one, severity=WARNING) if _key(one) in kept else one for one in found]


def _judged(services: Services, loaded: Loaded, mode: str | None, present: StartState | None) -> list[Finding]:
    known, contract, settings = list(loaded.findings), loaded.contract, services.settings
    if contract is not None:
        given = (loaded.links, loaded.repositories, present)
        return [*known, *registry.findings(contract, settings, loaded.policy, mode, *given)]
    if STRICT in (mode, *(draft.mode for draft in loaded.drafts)):
        known = [replace(f, severity=ERROR) if f.code == _UNPROVEN else f for f in known]
    return [*known, *registry.findings_of_drafts(loaded.drafts, settings, loaded.policy, mode)]


_Key = tuple[str, str, str, str]


def _key(found: Finding) -> _Key:
    """What a finding is about, wherever it stands: an amendment moves lines."""
    return found.code, found.path, found.found, found.message


def _agreed_words(services: Services, loaded: Loaded, worded: Sequence[Finding]) -> frozenset[_Key]:
    """Those of the findings that are about words which a strict approval is bound to, or which a strict run locked."""
    contract = loaded.contract
    if contract is None:
        return frozenset()
    hashed = contracts.phase_hash(contract.plans)
    known = (kept for kept in services.consent.approvals(contract.phase) if kept.revoked is None)
    if any(kept.approval.mode == STRICT and kept.approval.plan_hash == hashed for kept in known):
        return frozenset(map(_key, worded))
    run = services.runs.latest(contract.phase)
    state = replay(services.log.events(run=run)) if run is not None else None
    if state is None or state.mode != STRICT:
        return frozenset()
    if dict(state.contract.plans) == {plan.path: plan.sha256 for plan in contract.plans}:
        return frozenset(map(_key, worded))
    try:
        before = locked(services, state, contract.folder).contract
    except Refusal:  # what it locked is gone, so nothing tells which words are new
        return frozenset()
    found = () if before is None else registry.findings(before, services.settings, loaded.policy, STRICT)
    return frozenset(_key(one) for one in found if one.code in registry.OF_WORDS)


def _belongs(plans: PlanFiles, plan: Plan, folder: str) -> bool:
    """Whether the phase that a plan names is the folder it lies in; a task's id would lead elsewhere otherwise."""
    try:
        return plans.phase_folder(plan.phase) == folder
    except InputError:
        return False


def _misplaced(plan: Plan, folder: str) -> Finding:
    span = plan.spans.get("phase")
    return Finding(
        "plan.other-folder",
        ERROR,
        plan.path,
        span.line if span else 1,
        1,
        "phase",
        plan.phase,
        "the phase of the plan's folder",
        f"{plan.path} says phase {plan.phase}, but {folder} is another phase's folder.",
        "Correct `phase`, or move the plan.",
    )


def _wrong_phase(plan: Plan, first: Plan) -> Finding:
    span = plan.spans.get("phase")
    return Finding(
        "plan.other-phase",
        ERROR,
        plan.path,
        span.line if span else 1,
        1,
        "phase",
        plan.phase,
        first.phase,
        f"{plan.path} says phase {plan.phase}, {first.path} in the same folder says {first.phase}.",
        "Spell the phase alike in all plans of a folder.",
    )


def runnable(services: Services, loaded: Loaded) -> Contract:
    """The contract, if it is legal and can be executed here; InputError with every finding otherwise."""
    findings = judged(services, loaded)
    wrong = errors(findings)
    if loaded.contract is None or wrong:
        count = len(wrong)
        raise InputError(
            "plan.invalid",
            f"Phase {loaded.phase} cannot be executed: {count} error{'s' * (count != 1)}.",
            findings=findings,
            hint=f"idumb check-plan {loaded.phase}",
            details={"phase": loaded.phase},
        )
    return loaded.contract


def require_contract(services: Services, phase: str) -> Contract:
    loaded = of(services, phase)
    if loaded.contract is None:
        raise InputError(
            "plan.invalid",
            f"Phase {phase} cannot be read.",
            findings=loaded.findings,
            hint=f"idumb check-plan {phase}",
            details={"phase": phase},
        )
    return loaded.contract
