"""docs/findings.md has every code, and every example on it shows its finding."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from idumb.domain.finding import Finding
from idumb.domain.intake import registry
from idumb.domain.intake.rule import SILENT, Rule
from idumb.domain.plans.plan import GUIDED, STRICT

ROOT = Path(__file__).resolve().parents[2]
_KINDS = "plan|task|field|criterion|box|fence|comment|yaml|json|steps?|command|test|condition|interface|limits|rollback"
_CODE = re.compile(rf'"((?:{_KINDS}|option|handoff|files)\.[a-z0-9-]+)"')
NO_FINDINGS = {"plan_files", "configuration", "policy", "amendment_writer"}
"""Modules whose codes are errors of a command, not findings of a plan."""


def _generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_findings", ROOT / "docs" / "generate_findings.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["generate_findings"] = module
    spec.loader.exec_module(module)
    return module


generator = _generator()


def codes(findings: tuple[Finding, ...]) -> set[str]:
    return {one.code for one in findings}


@pytest.mark.parametrize("rule", registry.RULES, ids=lambda rule: rule.code)
def test_the_example_of_a_check_has_its_finding_with_the_documented_severity(rule: Rule) -> None:
    """R-LOCK-1."""
    for mode, severity in ((GUIDED, rule.guided), (STRICT, rule.strict)):
        severities = {
            one.severity for one in generator.of_example(generator.EXAMPLES[rule.code], mode) if one.code == rule.code
        }
        severities -= (
            {"warning"} if "error" in severities else set()
        )  # the parser tells of it too, by the mode of the plan
        assert severities == (set() if severity == SILENT else {severity})


@pytest.mark.parametrize("code", generator.TOGETHER)
def test_the_example_of_a_phase_has_its_finding(code: str) -> None:
    """R-PLAN-6."""
    assert code in codes(generator.of_phase(generator.TOGETHER[code]))


@pytest.mark.parametrize("code", generator.SHOWN_HERE)
def test_an_example_that_is_not_in_a_format_case_has_its_finding(code: str) -> None:
    assert code in codes(generator.of_text(*generator.SHOWN_HERE[code]))


def test_the_findings_page_is_up_to_date() -> None:
    page = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
    assert page == generator.page(), "run python docs/generate_findings.py"


def test_every_finding_code_is_on_the_page() -> None:
    page = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
    sources = [
        *(path for path in (ROOT / "idumb/markdown").rglob("*.py") if path.stem not in NO_FINDINGS),
        *(ROOT / "idumb/domain/intake").glob("*.py"),
    ]
    used = {code for path in sources for code in _CODE.findall(path.read_text(encoding="utf-8"))}
    assert len(used) > 110
    assert {code for code in used if f"`{code}`" not in page} == set()


def test_each_code_has_one_rule() -> None:
    codes = [rule.code for rule in registry.RULES]
    assert len(codes) == len(set(codes))
    assert codes == list(generator.EXAMPLES)
