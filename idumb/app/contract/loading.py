"""Reads the plans of a phase into a contract, with every finding."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from idumb.app.core import actions, open_attempt, run_lookup
from idumb.app.core.services import Services, from_start, plans_ref
from idumb.app.ports import ParsedPlan
from idumb.domain import contract as contracts
from idumb.domain.action import REASON, Action, Choice
from idumb.domain.contract import Contract
from idumb.domain.errors import IdumbError, InputError, Refusal
from idumb.domain.finding import ERROR, Finding, errors
from idumb.domain.intake import registry, writes
from idumb.domain.intake.rule import Case, StartState
from idumb.domain.permissions import NO_POLICY, Policy
from idumb.domain.plans import phase_ids
from idumb.domain.plans.plan import STRICT, Plan
from idumb.domain.proof import gate_table
from idumb.domain.proof.gate import Deadline, OutOfTimeError
from idumb.domain.runs.run import CLOSED, RunState
from idumb.domain.settings import Settings

if TYPE_CHECKING:
    from idumb.markdown.plan_files import PlanningFolder

_TASK_START = re.compile(
    r"(?:#[ \t]*|\[[^\]\n]?\][ \t]*|\bid[\"']?[ \t]*:[ \t]*[\"']?)[*_`\[(]*(?:Task[ \t]+)?(T[\w.-]*-\d+[a-z]?)"
)
_UNPROVEN = "criterion.unproven"
"""The format reports this for invalid plans; for valid plans the checks report it, depending on the mode."""


class Loaded(Struct, frozen=True):
    """`contract` is None if a finding of the format or the graph is an error.

    `parsed` are the plans with their paths, `sources` their bytes. `links` and `repositories` are those of a `Case`.
    """

    phase: str
    folder: str
    contract: Contract | None
    findings: tuple[Finding, ...]
    parsed: tuple[tuple[str, ParsedPlan], ...] = ()
    sources: tuple[tuple[str, bytes], ...] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    repositories: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(path for path, _ in self.parsed)

    @property
    def drafts(self) -> tuple[Plan, ...]:
        """The plans as far as they could be read, if there is no contract."""
        return () if self.contract is not None else _drafts(self.parsed)


def _drafts(parsed: Iterable[tuple[str, ParsedPlan]]) -> tuple[Plan, ...]:
    return contracts.in_waves([draft for _, p in parsed if (draft := p.plan or p.draft) is not None])


def _folder(plans: PlanningFolder, phase: str) -> str:
    """The folder of a phase, also by its number alone. InputError `phase.no-plan` if only the roadmap has it."""
    try:
        return plans.phase_folder(phase)
    except InputError as problem:
        named = next((folder for number, folder in plans.phases() if plans.same_phase(number, phase)), None)
        if named is not None and problem.code == "phase.not-found":
            return named
        roadmap_number = next((p.number for p in plans.roadmap() if plans.same_phase(p.number, phase)), None)
        if problem.code != "phase.not-found" or roadmap_number is None:
            raise
        raise _no_plan(f".planning/phases/{roadmap_number}") from problem


def _no_plan(folder: str, notes: Sequence[Finding] = ()) -> InputError:
    steps = phase_ids.step_plan_of_reports(folder)
    if steps is not None:
        return InputError(
            "phase.no-plan",
            f"The repository has no step plan {steps}.",
            hint=Action.of("help", "step-plans"),
            details={"choices": actions.choice_rows((_BY_PATH,))},
        )
    top, _, name = folder.rpartition("/")
    is_free = f"{folder}/01-PLAN.md" not in (note.path for note in notes)
    written = Action.of("plan-phase", name, "--template") if top == ".planning/phases" and is_free else None
    template = Choice("template", "write a plan to fill in", "a new file, with every field", written)
    by_hand = Choice("write", f"write {folder}/01-PLAN.md yourself", "idumb help plan-format shows an example")
    return InputError(
        "phase.no-plan",
        f"{folder} has no plan: {notes[0].message.rstrip('.') if notes else 'no file name ends in PLAN.md'}.",
        hint=written or Action.of("help", "plan-format"),
        details={"choices": actions.choice_rows((template, by_hand) if written else (by_hand,))},
    )


_BY_PATH = Choice("name", "use its path from the repository's root", "its steps are read; nothing runs")


def load_phase(services: Services, phase: str, *, or_locked: bool = False) -> Loaded:
    """Load the plans of a phase, with links and repositories. If the plan of a run is missing, the hint restores it.

    With `or_locked`, missing plans are those that its newest run locked.
    """
    try:
        loaded = load_present(services, phase)
    except InputError as problem:
        is_gone = problem.code in ("phase.no-plan", "phase.not-found")
        state = run_lookup.newest_run(services, phase) if is_gone else None
        if state is not None and or_locked:
            return load_locked(services, state)
        kept = "" if state is None else restore_commands(services, state)
        if state is None or not kept:
            raise
        ways = [Choice("bring-back", "restore the plan of the run", "its run can continue; nothing else changes", kept)]
        others = problem.details.get("choices", ())
        if state.opened is not None:  # until it ends, no other command may change files
            others = actions.choice_rows(open_attempt.choices(state.opened.id)[1:])
        elif state.state not in CLOSED:
            drop = Action.of("drop", state.phase, "--why", REASON)
            ways.append(Choice("drop", "abandon the phase", "what is done stays done; undo takes it up again", drop))
        details = {"choices": [*actions.choice_rows(ways), *others]}
        raise InputError(problem.code, problem.message, hint=kept, details=details) from problem
    return with_links(services, loaded)


def load_present(services: Services, phase: str) -> Loaded:
    """Parse and assemble the plans, without links. Raises only if the phase does not exist or has no plan."""
    plans = services.plans
    folder = _folder(plans, phase)
    sources, notes = plans.plans(folder), tuple(plans.notes(folder))
    if not sources:
        raise _no_plan(folder, notes)
    parsed = [(path, plans.parse(data, path, [other for p, other in sources if p != path])) for path, data in sources]
    elsewhere = [p.plan for _, p in parsed if p.plan and not _belongs(plans, p.plan, folder)]
    misplaced = [p.finding("plan.other-folder", "", p.phase, words={"folder": folder}) for p in elsewhere]
    return assemble(phase, folder, parsed, services.settings, sources, [*notes, *misplaced], policy=services.policy)


def with_links(services: Services, loaded: Loaded) -> Loaded:
    """Add the links among the paths that the contract writes, and the repositories that may contain them."""
    if loaded.contract is None:
        return loaded
    places = writes.places(loaded.contract)
    links = services.named_files.links(sorted(places))
    inside = {target for target in links.values() if not target.startswith("/")}
    return replace(loaded, links=links, repositories=services.history.repositories(places | inside))


def load_file(services: Services, path: str) -> Loaded:
    """Load one plan that is in no phase folder, for checks only.

    Plans that it depends on are elsewhere, so it is read as if it depended on none.
    """
    data = services.plans.read(path)
    parsed = services.plans.parse(data, path)
    if parsed.plan is not None:
        parsed = replace(parsed, plan=replace(parsed.plan, depends_on=()))
    folder = path.rpartition("/")[0] or "."
    loaded = assemble(path, folder, [(path, parsed)], services.settings, [(path, data)], policy=services.policy)
    return with_links(services, loaded)


def restore_commands(services: Services, state: RunState, only: Sequence[str] = ()) -> str:
    """The commands that restore the plans of a run, or `only` these, as it last locked them; "" if none is kept."""
    blobs = services.trees.kept_blobs(plans_ref(services, state.id, state.contract.version))
    names = ((path, blobs.get(path.rsplit("/", 1)[-1])) for path, _ in state.contract.plans)
    kept = {path: blob for path, blob in names if blob and (not only or path in only)}
    gone = {path.rpartition("/")[0] for path in kept} - {"", *(folder for _, folder in services.plans.phases())}
    made = [f"mkdir -p {shlex.quote(from_start(services, folder))}" for folder in sorted(gone)]
    written = (f"git show {blob} > {shlex.quote(from_start(services, path))}" for path, blob in kept.items())
    return "; ".join([*made, *written])


def load_locked(services: Services, state: RunState) -> Loaded:
    """Load the plans as the run last locked them, under the present configuration."""
    folder = state.contract.plans[0][0].rpartition("/")[0] if state.contract.plans else ""
    with contextlib.suppress(InputError):  # unless it was archived, or has two folders
        folder = services.plans.phase_folder(state.phase)  # it may have another name now
    ref = plans_ref(services, state.id, state.contract.version)
    kept = services.trees.kept_blobs(ref)
    if not kept:
        raise Refusal(
            "plan.kept-gone",
            f"The locked plans of run {state.number} are lost: {ref} no longer exists.",
            hint=Action.of("doctor", "--fix"),
        )
    names = {path.rsplit("/", 1)[-1]: path for path, _ in state.contract.plans}
    sources = [(names.get(name, f"{folder}/{name}"), services.trees.read(blob)) for name, blob in kept.items()]
    return load_sources(services, state.phase, folder, sources)


def locked_contract(services: Services, state: RunState) -> Contract:
    """Return the contract as the run last locked it."""
    contract = load_locked(services, state).contract if state.contract.plans else None
    if contract is None:
        raise _invalid(state.phase, f"The locked plan of phase {state.phase} can no longer be read.", Action("doctor"))
    return contract


def find_locked_contract(services: Services, state: RunState) -> Contract | None:
    """Return the contract as the run last locked it; None if its plans are lost or can no longer be read."""
    try:
        return locked_contract(services, state)
    except IdumbError:
        return None


def load_sources(services: Services, phase: str, folder: str, sources: Sequence[tuple[str, bytes]]) -> Loaded:
    """Load the contract that these bytes would be, under the present configuration and policy."""
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
    good = contracts.in_waves([p.plan for _, p in parsed if p.plan is not None])
    findings += [_wrong_phase(plan, good[0]) for plan in good if plan.phase != good[0].phase]
    contract: Contract | None = None
    if len(good) == len(parsed) and not errors(findings):
        contract, assembled = contracts.assemble(good[0].phase, folder, good, settings, policy.digest)
        findings += assembled
    else:
        findings += _across(parsed)
    if contract is not None:
        findings = [f for f in findings if f.code != _UNPROVEN]
    return Loaded(phase, folder, contract, tuple(findings), tuple(parsed), tuple(sources))


def _across(parsed: Sequence[tuple[str, ParsedPlan]]) -> tuple[Finding, ...]:
    """Findings of the graph for plans with other errors, except those that only follow from these errors."""
    drafts = _drafts(parsed)
    if len(drafts) < len(parsed):
        return contracts.cross_plan_findings(drafts, None)
    begun = {id for _, p in parsed if p.plan is None for id in _TASK_START.findall(p.text)}
    return contracts.cross_plan_findings(drafts, begun)


def all_findings(
    services: Services, loaded: Loaded, mode: str | None = None, present: StartState | None = None
) -> list[Finding]:
    """Every finding of format, graph and checks, for the mode of the plans or a stricter `mode`."""
    findings, contract, settings = list(loaded.findings), loaded.contract, services.settings
    if contract is not None:
        case = Case(contract, settings, services.policy, mode, loaded.links, loaded.repositories, present)
        deadline = Deadline.after(gate_table.time_to_judge(settings, gate_table.PLAN), services.clock.monotonic)
        try:
            return [*findings, *(_placed(services, found) for found in registry.findings(case, deadline))]
        except OutOfTimeError as expired:
            raise InputError(
                "plan.not-judged",
                f"Phase {loaded.phase} was {expired}, so nothing can approve or run it.",
                hint="Split the phase into smaller ones",
                details={"phase": loaded.phase},
            ) from None
    if STRICT in (mode, *(draft.mode for draft in loaded.drafts)):
        findings = [replace(f, severity=ERROR) if f.code == _UNPROVEN else f for f in findings]
    return [*findings, *registry.findings_of_drafts(loaded.drafts, settings, services.policy, mode)]


def _placed(services: Services, finding: Finding) -> Finding:
    """Return the finding; one about a gate of the configuration at the line of that gate."""
    if not finding.field.startswith("gates."):
        return finding
    line, column = services.setting_place(*finding.field.split(".", 1))
    return replace(finding, line=line, column=column)


def _belongs(plans: PlanningFolder, plan: Plan, folder: str) -> bool:
    """Whether a plan is in the folder of the phase that it names. Otherwise its task ids would name another phase."""
    try:
        return plans.phase_folder(plan.phase) == folder
    except InputError:
        return False


def _wrong_phase(plan: Plan, first: Plan) -> Finding:
    return plan.finding("plan.other-phase", "", plan.phase, accepted=first.phase, words={"first": first.path})


def valid_contract(services: Services, loaded: Loaded, present: StartState | None = None) -> Contract:
    """Return the contract if it is valid. InputError with every finding, also about `present` files if they are given.

    `plan_checks.startable_contract` also looks at what exists now.
    """
    findings = all_findings(services, loaded, present=present)
    count = len(errors(findings))
    if loaded.contract is None or count:
        words = f"Phase {loaded.phase} cannot run: {count} error{'s' * (count != 1)}."
        raise _invalid(loaded.phase, words, Action.of("check-plan", loaded.phase), findings)
    return loaded.contract


def _invalid(phase: str, words: str, hint: Action, findings: Sequence[Finding] = ()) -> InputError:
    return InputError("plan.invalid", words, findings=findings, hint=hint, details={"phase": phase})


def require_contract(services: Services, phase: str, *, or_locked: bool = False) -> Contract:
    loaded = load_phase(services, phase, or_locked=or_locked)
    if loaded.contract is None:
        words = f"The plan of phase {phase} cannot be read."
        raise _invalid(phase, words, Action.of("check-plan", phase), loaded.findings)
    return loaded.contract
