"""docs/findings.md has every code, and every example of a check shows its finding."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from idumb.domain import catalog
from idumb.domain.finding import SILENT
from idumb.domain.intake import registry
from idumb.domain.plans.plan import GUIDED, STRICT
from tests.docs import generated, shown_findings
from tests.docs.check_examples import EXAMPLES

ROOT = Path(__file__).resolve().parents[2]
_KINDS = "plan|task|field|criterion|box|fence|comment|yaml|json|steps?|command|test|condition|interface|limits|rollback"
_CODE = re.compile(rf'"((?:{_KINDS}|option|handoff|files)\.[a-z0-9-]+)"')
NO_FINDINGS = {"plan_files", "configuration", "policy", "amendment_writer"}
"""Modules whose codes are errors of a command, not findings of a plan."""


def test_the_example_of_a_check_has_its_finding_with_the_documented_severity() -> None:
    """R-LOCK-1."""
    modes = [(code, mode) for code in registry.CODES for mode in (GUIDED, STRICT)]
    found = {(code, mode): severities(code, mode) for code, mode in modes}
    documented = {(code, mode): getattr(catalog.ROWS[code], mode) for code, mode in modes}
    assert found == {place: set() if severity == SILENT else {severity} for place, severity in documented.items()}


def severities(code: str, mode: str) -> set[str]:
    found = shown_findings.of_example(EXAMPLES[code], mode)
    shown = {one.severity for one in found if one.code == code}
    return shown - {"warning"} if "error" in shown else shown  # the parser tells of it too, by the mode of the plan


def test_the_example_of_a_phase_has_its_finding() -> None:
    """R-PLAN-6."""
    small = {code: phase for code, phase in shown_findings.TOGETHER.items() if code != "phase.too-many-tasks"}
    found = {code: shown_findings.of_phase(phase) for code, phase in small.items()}
    assert [code for code, findings in found.items() if code not in {one.code for one in findings}] == []


def test_the_findings_page_is_up_to_date() -> None:
    """The page cannot be made if an example that is in no format case lacks its finding."""
    page = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
    assert page == generated.page("findings", page), "run python docs/generate_findings.py"


def test_every_finding_code_is_on_the_page() -> None:
    of_format = used(path for path in (ROOT / "idumb/markdown").rglob("*.py") if path.stem not in NO_FINDINGS)
    every = of_format | used((ROOT / "idumb/domain/intake").glob("*.py"))
    assert len(every) > 110
    text = (ROOT / "docs/findings.md").read_text(encoding="utf-8")
    assert {code for code in every if f"`{code}`" not in text} == set()


def test_every_row_of_the_catalog_is_reported_somewhere() -> None:
    files = (path for path in (ROOT / "idumb").rglob("*.py") if path.stem not in ("catalog", "check_rows"))
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    composed = {"task.no-id", "task.unknown-invariant", "task.unknown-requirement", "step.unknown-argument"}
    named = {code: (f'"{code}"', f'"{code.partition(".")[2]}"', f'.{code.partition(".")[2]}"') for code in catalog.ROWS}
    codes = {code for code, words in named.items() if not any(word in text for word in words)}
    assert {code for code in codes if code.partition(".")[2] not in catalog.OF_MAPPINGS} == composed


def used(sources: Iterable[Path]) -> set[str]:
    return {code for path in sources for code in _CODE.findall(path.read_text(encoding="utf-8"))}


def test_each_code_has_one_check_and_one_example() -> None:
    assert len(registry.CODES) == len(set(registry.CODES))
    assert set(registry.CODES) == EXAMPLES.keys()
