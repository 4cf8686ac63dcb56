"""Draft plans: check a proposed plan together with the phase's other plans, and write it if it is legal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from idumb.app.contract import loading, plan_checks
from idumb.app.contract.loading import Loaded
from idumb.app.core import actions
from idumb.app.core.services import Result, Services, write_forced
from idumb.app.planning import phase_context
from idumb.app.planning.phase_context import PhaseLocation
from idumb.app.ports import ParsedPlan
from idumb.app.review import check_plan
from idumb.domain import whole_numbers, wording
from idumb.domain.action import Action, Choice
from idumb.domain.contract import Contract
from idumb.domain.errors import EXIT_INVALID, IdumbError, Refusal
from idumb.domain.finding import ERROR, Finding
from idumb.domain.finding import errors as only_errors
from idumb.domain.plans.plan import Plan
from idumb.domain.proof import ledger, verification

NEW_TASK = ("--task", "TITLE", "create PATH", "COMMAND")
"""What describes a new task on the command line, for hints."""
CLOSED = "passed"
"""The status of a verification that found no gap."""
_BACKUP_FOLDER = "drafts"

_NUMBER = re.compile(r"(\d+)-?PLAN\.md\Z")


class PlanFile(NamedTuple):
    """The file of a plan, which may not exist yet."""

    where: PhaseLocation
    id: str
    path: str


class Draft(Struct, frozen=True):
    """`text` is what would be written to `path`; `findings` are those of this plan and of the phase with it."""

    path: str
    text: str
    findings: tuple[Finding, ...]
    loaded: Loaded

    @property
    def legal(self) -> bool:
        return self.loaded.contract is not None and not only_errors(self.findings)

    @property
    def parsed(self) -> ParsedPlan:
        """Return this plan alone as it is read."""
        return dict(self.loaded.parsed)[self.path]

    @property
    def plan(self) -> Plan | None:
        """Return the parsed plan; None if the phase with it is not a legal contract."""
        return None if self.loaded.contract is None else self.parsed.plan

    @property
    def feedback(self) -> str:
        """Return the findings, one line each, for the author of the next draft."""
        lines = (f"- line {f.line}: {f.severity}: {f.message} {f.fix}".rstrip() for f in self.findings)
        return wording.truncate("\n".join(map(wording.one_line, lines)), 20_000)


def next_plan(services: Services, where: PhaseLocation, *, is_first: bool = False) -> PlanFile:
    """Return the phase's next plan, `01` for the first. Refusal `plan.exists` if it must be the first, and is not."""
    numbers: list[str] = []
    for path, _ in services.plans.plans(where.folder):
        match = _NUMBER.search(path)
        numbers.append(match[1] if match else str(len(numbers) + 1))
    id = f"{whole_numbers.next_free(numbers):02d}"
    if is_first and id != "01":
        raise _already_planned(services, where)
    return PlanFile(where, id, f"{where.folder}/{id}-PLAN.md")


def _already_planned(services: Services, where: PhaseLocation) -> Refusal:
    """Return the refusal to write a first plan for a phase that has one."""
    paths = [path for path, _ in services.plans.plans(where.folder)]
    locked = services.log.latest_run(where.phase) is not None
    report = services.plans.recorded(where.folder, "VERIFICATION")
    has_gaps = report is not None and report.get("status") != CLOSED
    gaps = Action.of("plan-phase", where.phase, "--gaps")
    add = Action.of("plan", "add-task", where.phase, *NEW_TASK)
    ways = (
        Choice("gaps", "plan what its verification found open", "a further plan; the first stays as it is", gaps),
        Choice("add", "add a task to it, with what it writes and the command that proves it", "the rest stays", add),
    )[0 if has_gaps else 1 :]
    return Refusal(
        "plan.exists",
        f"Phase {where.phase} already has a plan, which idumb does not overwrite: {', '.join(paths)}.",
        hint=add,
        details={"plans": paths, "locked": locked, "choices": actions.choice_rows(ways)},
    )


def judge(services: Services, file: PlanFile, text: str) -> Draft:
    """Check a plan as `check-plan` would once it is written; write nothing."""
    where, path = file.where, file.path
    data = text.encode("utf-8", "surrogateescape")
    sources = [*(source for source in services.plans.plans(where.folder) if source[0] != path), (path, data)]
    parsed = [(name, services.plans.parse(each, name)) for name, each in sources]
    plan = parsed[-1][1].plan
    misnamed = [] if plan is None else [*_naming_findings(services, file, plan)]
    loaded = loading.assemble(
        where.phase, where.folder, parsed, services.settings, sources, misnamed, policy=services.policy
    )
    if loaded.contract is None:
        return Draft(path, text, _relevant(loaded.findings, path), loaded)
    loaded = loading.with_links(services, loaded)
    return Draft(path, text, _relevant(plan_checks.findings(services, loaded), path), loaded)


def illegal(data: Mapping[str, object], message: str) -> Result:
    """Return the answer of a command whose plan has errors, which `data` lists. `check-plan` cannot check it."""
    failure = ("plan.invalid", message, "Correct the findings above, then run the command again")
    return Result({**data, "written": False, "next": []}, EXIT_INVALID, (), failure)


def _relevant(findings: Sequence[Finding], path: str) -> tuple[Finding, ...]:
    """Return the errors of the whole phase and the warnings of the new plan; other warnings are old."""
    return tuple(sorted((f for f in findings if f.path == path or f.severity == ERROR), key=lambda f: (f.path, f.line)))


def _naming_findings(services: Services, file: PlanFile, plan: Plan) -> Iterator[Finding]:
    """Yield findings if the plan does not state the phase and id of its path."""
    if not services.plans.same_phase(plan.phase, file.where.phase):
        yield plan.finding("plan.other-name", "phase", plan.phase, accepted=file.where.phase)
    if plan.plan != file.id:
        yield plan.finding("plan.other-name", "plan", plan.plan, accepted=file.id)


def write(services: Services, draft: Draft) -> None:
    """Write the plan atomically. If the file exists by now, keep the draft and raise Refusal `plan.exists`."""
    if services.files.exists(draft.path):
        kept = keep(services, draft)
        words = f"{draft.path} exists by now, and idumb does not overwrite a plan."
        hint = f"Compare it with the new plan, kept in {kept}"
        raise Refusal("plan.exists", words, hint=hint, details={"kept": kept})
    write_forced(services, draft.path, draft.text)


def keep(services: Services, draft: Draft) -> str:
    """Keep a copy of an unwritten plan in idumb's own folder, and return its path."""
    name = draft.path.removeprefix(".planning/phases/").replace("/", "-")
    return services.backups.keep(_BACKUP_FOLDER, name, draft.text.encode("utf-8", "surrogateescape"))


def write_gap_plan(services: Services, contract: Contract, record: dict[str, object]) -> str | None:
    """Write a plan with a task for each gap of a verification, and return its path; None if there is no gap."""
    without_secrets = services.redactor.redact
    # A check that contains a secret would not run without it, so the plan omits such a check.
    gaps = tuple(
        each if each.check is None or without_secrets(each.check) == each.check else replace(each, check=None)
        for each in verification.gaps_of(record)
    )
    if not gaps:
        return None
    file = next_plan(services, phase_context.locate(services, contract.phase))
    claims = [c for task in contract.tasks.values() for c in ledger.written_claims(task.files or ())]
    text = services.documents.gap_plan(
        contract,
        gaps,
        id=file.id,
        first=int(check_plan.next_free_id(contract).rpartition("-")[2]),
        builder=contract.plans[0].builder or services.settings.builder,  # without one, its tasks are for a person
        reach=verification.reachable(claims),
    )
    draft = judge(services, file, without_secrets(text))
    if not draft.legal:
        kept = keep(services, draft)
        raise IdumbError(
            "plan.gaps-illegal",
            f"The plan for {len(gaps)} gaps was not written because it is not legal: {draft.feedback}",
            hint=f"Correct the draft in {kept}, and move it to {file.path}",
        )
    write(services, draft)
    return file.path
