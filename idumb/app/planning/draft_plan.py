"""A plan that is offered for a phase: read, checked with what the phase has already, and written if it is legal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from idumb.app.contract import loading
from idumb.app.contract.loading import Loaded
from idumb.app.core.services import Services
from idumb.app.planning.phase_context import PhaseLocation
from idumb.app.review import check_plan
from idumb.domain import whole_numbers, wording
from idumb.domain.errors import Refusal
from idumb.domain.finding import ERROR, Finding
from idumb.domain.finding import errors as only_errors
from idumb.domain.plans.plan import Plan

ATTIC = "drafts"
_NUMBER = re.compile(r"(\d+)-?PLAN\.md\Z")


@dataclass(frozen=True, slots=True)
class Draft:
    """`text` is what would be written to `path`; `findings` are those of this plan and of the phase with it."""

    path: str
    text: str
    findings: tuple[Finding, ...]
    loaded: Loaded | None = None

    @property
    def legal(self) -> bool:
        return self.loaded is not None and self.loaded.contract is not None and not only_errors(self.findings)

    @property
    def plan(self) -> Plan | None:
        """As it was read; None where the phase with it is no contract."""
        contract = self.loaded.contract if self.loaded is not None else None
        return next((p for p in contract.plans if p.path == self.path), None) if contract is not None else None

    @property
    def feedback(self) -> str:
        """What is wrong, one line a finding, for who is to write it again."""
        lines = (f"- line {f.line}: {f.severity}: {f.message} {f.mend}".rstrip() for f in self.findings)
        return wording.truncate("\n".join(map(wording.one_line, lines)), 20_000)


def next_path(services: Services, where: PhaseLocation) -> tuple[str, str]:
    """The id of the phase's next plan, `01` for the first, and the file it goes to."""
    numbers: list[str] = []
    for path, _ in services.plans.plans(where.folder) if where.exists else ():
        found = _NUMBER.search(path)
        numbers.append(found[1] if found else str(len(numbers) + 1))
    identity = f"{whole_numbers.next_free(numbers):02d}"
    return identity, f"{where.folder}/{identity}-PLAN.md"


def judge(services: Services, where: PhaseLocation, identity: str, path: str, text: str) -> Draft:
    """Everything `check-plan` would say once the plan is there; nothing is written."""
    data = text.encode("utf-8", "surrogateescape")
    before = services.plans.plans(where.folder) if where.exists else ()
    sources = [*(one for one in before if one[0] != path), (path, data)]
    parsed = [(name, services.plans.parse(each, name)) for name, each in sources]
    plan = parsed[-1][1].plan
    wrong = _names(services, where, identity, plan) if plan is not None else []
    loaded = loading.assemble(
        where.phase, where.folder, parsed, services.settings, sources, wrong, policy=services.policy
    )
    if loaded.contract is None:
        return Draft(path, text, _own(loaded.findings, path), loaded)
    loaded = loading.with_links(services, loaded)
    return Draft(path, text, _own(check_plan.findings(services, loaded), path), loaded)


def _own(findings: Sequence[Finding], path: str) -> tuple[Finding, ...]:
    """Errors of the whole phase, and of warnings only those of the new plan: the others were there before."""
    return tuple(sorted((f for f in findings if f.path == path or f.severity == ERROR), key=lambda f: (f.path, f.line)))


def _names(services: Services, where: PhaseLocation, identity: str, plan: Plan) -> list[Finding]:
    """The plan must say the phase and the id under which it is filed."""
    found = []
    if not services.plans.same_phase(plan.phase, where.phase):
        found.append(_named_otherwise(plan, "phase", plan.phase, where.phase))
    if plan.plan != identity:
        found.append(_named_otherwise(plan, "plan", plan.plan, identity))
    return found


def _named_otherwise(plan: Plan, key: str, found: str, wanted: str) -> Finding:
    span = plan.spans.get(key)
    words = f"The plan says `{key}: {found}`, and it is to be {wanted}."
    line = span.line if span else 1
    return Finding("plan.other-name", ERROR, plan.path, line, 1, key, found, wanted, words, f'Write {key}: "{wanted}".')


def write(services: Services, draft: Draft) -> None:
    """The file, whole or not at all; Refusal `plan.exists`, with the draft kept, where there is one by now."""
    _require_no_link(services, draft.path)
    if services.reports.exists(draft.path):
        kept = keep(services, draft)
        raise Refusal(
            "plan.exists",
            f"{draft.path} is there by now, and no plan is written over another.",
            hint=f"Compare it with the new one, which is kept in {kept}",
            details={"kept": kept},
        )
    services.reports.write_source(draft.path, draft.text)
    services.trees.force((draft.path,))


def _require_no_link(services: Services, path: str) -> None:
    parts = path.split("/")
    links = services.files.links("/".join(parts[:end]) for end in range(1, len(parts) + 1))
    if links:
        link = min(links, key=len)
        raise Refusal(
            "plan.link",
            f"{link} is a symbolic link to {links[link] or '.'}, and idumb writes no plan through one.",
            hint=f"Put a folder in the place of {link}",
        )


def keep(services: Services, draft: Draft) -> str:
    """A copy of a plan that is not written, in idumb's own folder; where it is."""
    name = draft.path.removeprefix(".planning/phases/").replace("/", "-")
    return services.backups.keep(ATTIC, name, draft.text.encode("utf-8", "surrogateescape"))
