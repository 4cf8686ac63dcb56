"""The cases of the plan format and of the formats of other tools, each read once in a process."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from msgspec import NODEFAULT, Struct
from msgspec.structs import asdict

from idumb.app.ports import ParsedPlan
from idumb.domain import contract
from idumb.domain.plans import imported
from idumb.domain.plans.imported import Target
from idumb.domain.plans.plan import Plan
from idumb.domain.plans.source_tasks import SourcePlan
from idumb.markdown.plan_files import PlanningFolder
from idumb.markdown.plans import plan_parser
from tests.support import example_files

CASES = Path(__file__).parent / "cases"
NAMES = sorted(path.stem for path in CASES.glob("*.md"))
DIALECTS = CASES / "dialects"
SOURCES = CASES / "sources"
SOURCE_NAMES = sorted(path.name for path in SOURCES.iterdir() if path.is_dir())
_LEFT_OUT = {"span", "spans", "sha256"}


@cache
def data(name: str) -> bytes:
    return (CASES / f"{name}.md").read_bytes()


@cache
def parsed(name: str) -> ParsedPlan:
    return plan_parser.parse(data(name), "case.md")


def source(name: str) -> SourcePlan:
    """The plan of another tool in the folder of that name."""
    return PlanningFolder(str(SOURCES / name)).source(source_path(name), None)


def source_path(name: str) -> str:
    return str(example_files.read_json(SOURCES / f"{name}.json")["source"])


def source_texts() -> list[tuple[str, str]]:
    """The path and the text of each source that is one file."""
    paths = [(name, source_path(name)) for name in SOURCE_NAMES]
    return [(path, source_text(name)) for name, path in paths if (SOURCES / name / path).is_file()]


def source_text(name: str) -> str:
    return (SOURCES / name / source_path(name)).read_bytes().decode()


def written(plan: SourcePlan) -> str:
    """The plan of idumb that becomes of it in phase 7, where `src/a.py` exists."""
    ids = imported.ids("7", plan.tasks, {})
    return imported.text(plan, Target("7", "01", ids, lambda path: path == "src/a.py"))


def plans() -> dict[str, Plan]:
    """Every case that is a plan."""
    return {name: plan for name in NAMES if (plan := parsed(name).plan)}


def digests(plan: Plan) -> dict[str, str]:
    return {task.id: contract.task_digest(task) for task in plan.tasks}


def outcome(parsed: ParsedPlan) -> dict[str, Any]:
    findings = [f"{f.severity} {f.code} {f.line}" for f in parsed.findings]
    return {"findings": findings} if parsed.plan is None else {"plan": as_json(parsed.plan), "findings": findings}


def as_json(value: Any) -> Any:
    """A plan as JSON: every field that is not the default, without the places."""
    if isinstance(value, Struct):
        left_out = _LEFT_OUT | {"path"} if isinstance(value, Plan) else _LEFT_OUT
        given = {name: each for name, each in asdict(value).items() if name not in left_out}
        return {name: as_json(each) for name, each in given.items() if each not in ({}, _default(value, name))}
    if isinstance(value, tuple | list):
        return [as_json(item) for item in value]
    return {key: as_json(item) for key, item in value.items()} if isinstance(value, dict) else value


def _default(of: Struct, name: str) -> Any:
    defaults = of.__struct_defaults__
    return dict(zip(reversed(of.__struct_fields__), reversed(defaults), strict=False)).get(name, NODEFAULT)
