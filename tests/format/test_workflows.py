"""Workflow definitions: what they become, and every error with its line (R-PLAN-8)."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from idumb.app.ports import DefinitionFile, ParsedPlan
from idumb.domain import catalog
from idumb.domain.plans import expression, workflow
from idumb.domain.plans.phase_ids import WORKFLOW_RUNS
from idumb.markdown.plan_files import DefinitionFolders
from idumb.markdown.plans import workflow_parser
from tests.format import golden
from tests.meta import source
from tests.support import example_files
from tests.support.cases import every
from tests.support.growth import assert_linear

FOLDER = golden.CASES / "workflows"
PAGE = (source.ROOT / "docs/workflow-format.md").read_text(encoding="utf-8")
SHIPPED = sorted((source.ROOT / "templates/workflows").glob("*.md"))
HEAD = "---\ntype: workflow\nname: x\nversion: 1\ndescription: Tries things.\ninputs:\n  word: text\n---\n## All\n\n"
"""Ten lines: what is behind it starts on line 11."""


def step(keys: str, id: str = "one", title: str = "The first") -> str:
    return f"### {id}: {title}\n\n```yaml step\n{keys}\n```\n\n"


def parsed(body: str, head: str = HEAD) -> ParsedPlan:
    return workflow_parser.parse((head + body).encode(), "x.md")


def errors(body: str, head: str = HEAD) -> list[tuple[str, int]]:
    return [(finding.code, finding.line) for finding in parsed(body, head).findings]


def example() -> str:
    return str(re.findall(r"````markdown\n(.+?)````", PAGE, flags=re.DOTALL)[0])


@every("place", sorted(FOLDER.glob("*.md")))
def test_a_definition_gives_the_result_of_the_reference(place: Path) -> None:
    """R-PLAN-8: tasks of the same contract as a plan, or every mistake at its line."""
    parsed = workflow_parser.parse(place.read_bytes(), place.name)
    example_files.compare_json(place.with_suffix(".json"), golden.outcome(parsed))
    assert all(finding.fix or finding.accepted for finding in parsed.findings)


def test_the_example_of_the_page_is_a_case_and_every_code_of_workflows_has_one() -> None:
    assert example() == (FOLDER / "example-of-the-page.md").read_text(encoding="utf-8")
    results = "".join(place.read_text(encoding="utf-8") for place in (*FOLDER.glob("*.json"), Path(__file__)))
    codes = [code for code in catalog.ROWS if code.startswith("workflow.")]
    assert [code for code in codes if f"{code} " not in results and f'"{code}"' not in results] == []


@every("path", SHIPPED)
def test_every_shipped_workflow_is_valid_and_on_the_page(path: Path) -> None:
    result = workflow_parser.parse(path.read_bytes(), path.name, path.stem)
    assert result.findings == ()
    assert f"| `{path.stem}` |" in PAGE


def test_a_run_has_the_definitions_bytes_first_and_then_its_inputs() -> None:
    """The definition is pinned: its bytes are the beginning of the plan that is locked."""
    definition = (HEAD + step("kind: script\nrun: 'true'")).encode()
    origin = {"origin": "user", "sha256": "0" * 64}
    text = "Zwei\nWörter: \"'\\ 🎉 $(rm -rf .) # {"
    data = workflow.run_part(definition, origin, {"word": text}, "an-id")
    assert data.startswith(definition)
    assert workflow.is_pinned(definition, data)
    assert not workflow.is_pinned(definition[:-20], data)
    assert not workflow.is_pinned(data, data)
    plan = workflow_parser.parse(data, f"{WORKFLOW_RUNS.parent}/007-x/01-PLAN.md").plan
    assert plan is not None
    assert plan.workflow is not None
    assert (plan.phase, plan.tasks[0].id) == ("W7", "TW7-01")
    assert plan.workflow.values == {"word": text}
    assert plan.workflow.origin == {**origin, "handoff": "an-id"}
    assert plan.workflow.variables == {"INPUT_WORD": text}


@every("text", ["100000000000000000", "0.00001", "-0.000000000000000001", "1", "2.50"])
def test_a_number_that_is_accepted_can_be_read_again_from_the_run(text: str) -> None:
    value = workflow.from_text(workflow.Value("n", "number"), text)
    definition = HEAD.replace("word: text", "n: number") + step(SCRIPT)
    data = workflow.run_part(definition.encode(), {}, {"n": value})
    plan = workflow_parser.parse(data, f"{WORKFLOW_RUNS.parent}/007-x/01-PLAN.md").plan
    assert plan is not None
    assert plan.workflow is not None
    assert plan.workflow.values == {"n": float(text)}


@every("values, code", [
        ({}, "workflow.bad-input"), ({"word": 1}, "workflow.bad-input"),
        ({"word": "a", "x": "b"}, "workflow.unknown-input"),
    ])  # fmt: skip
def test_a_run_with_wrong_inputs_is_no_plan(values: dict[str, object], code: str) -> None:
    data = workflow.run_part((HEAD + step("kind: script\nrun: 'true'")).encode(), {}, values)
    result = workflow_parser.parse(data, f"{WORKFLOW_RUNS.parent}/007-x/01-PLAN.md")
    assert result.plan is None
    assert [finding.code for finding in result.findings] == [code]


SCRIPT = "kind: script\nrun: 'true'"


def test_a_definition_that_cannot_be_read_has_a_finding_and_no_plan(tmp_path: Path) -> None:
    file = DefinitionFile("x", "repository", ".idumb/workflows/x.md", b"", "Permission denied")
    (finding,) = DefinitionFolders(str(tmp_path)).parse(file).findings
    assert (finding.code, finding.severity, finding.place) == ("workflow.unreadable", "error", f"{file.path}:1")
    assert finding.message == "The file cannot be read: Permission denied"


def test_a_definition_must_have_the_name_of_its_file_and_begin_with_front_matter() -> None:
    result = workflow_parser.parse((HEAD + step(SCRIPT)).encode(), "y.md", "y")
    assert [finding.code for finding in result.findings] == ["workflow.other-name"]
    (finding,) = parsed("", "# Title\n").findings
    assert finding.message == "The file does not start with frontmatter"
    assert finding.fix == "start the file with ---, type: workflow, name, version, description and ---"


def test_a_path_that_an_input_makes_must_stay_in_the_repository() -> None:
    definition = (HEAD + step(f"{SCRIPT}\nfiles: {{create: ['{{inputs.word}}/a']}}")).encode()
    path = f"{WORKFLOW_RUNS.parent}/007-x/01-PLAN.md"
    good = workflow_parser.parse(workflow.run_part(definition, {}, {"word": "docs"}), path).plan
    assert good is not None
    assert [claim.path for claim in good.tasks[0].files or ()] == ["docs/a"]
    assert good.tasks[0].steps[0].scope == ("docs/a",)
    bad = workflow_parser.parse(workflow.run_part(definition, {}, {"word": "../.."}), path)
    assert [finding.code for finding in bad.findings] == ["workflow.bad-path"]


def test_omission_follows_outputs_and_nested_conditions_only() -> None:
    flows = {
        "outer": workflow.Flow("outer", "condition", "", then=("inner",), otherwise=("b",)),
        "inner": workflow.Flow("inner", "condition", "", then=("a",)),
        "a": workflow.Flow("a", "script", ""),
        "b": workflow.Flow("b", "script", ""),
        "takes": workflow.Flow("takes", "script", "", takes={"A": workflow.Take("a", "x")}),
        "default": workflow.Flow("default", "script", "", takes={"A": workflow.Take("a", "x", "")}),
        "after": workflow.Flow("after", "script", ""),
    }
    assert workflow.omitted_with(flows, ["inner"]) == ("inner", "a", "takes")
    assert workflow.omitted_with(flows, ["b"]) == ("b",)
    assert workflow.omitted_with(flows, ["a"], over={"a"}) == ()


def test_inputs_alone_decide_which_steps_never_run() -> None:
    types = {("inputs", "big"): "boolean", ("steps", "a", "outcome"): "text"}.get
    by_input, by_step = (expression.parse(text, types) for text in ("inputs.big", "steps.a.outcome == 'x'"))
    flows = {
        "if": workflow.Flow("if", "condition", "", condition=by_input, then=("a",), otherwise=("b",)),
        "a": workflow.Flow("a", "script", ""),
        "b": workflow.Flow("b", "script", ""),
        "takes": workflow.Flow("takes", "script", "", takes={"A": workflow.Take("a", "x")}),
        "later": workflow.Flow("later", "condition", "", condition=by_step, then=("c",)),
        "c": workflow.Flow("c", "script", ""),
    }
    assert workflow.omitted_by_inputs(flows, {"big": True}) == ("b",)
    assert workflow.omitted_by_inputs(flows, {"big": False}) == ("a", "takes")
    assert workflow.omitted_by_inputs(flows, {}) == (), "an input without a value decides nothing"


def test_a_long_chain_of_conditions_is_omitted_in_linear_time() -> None:
    def conditions(count: int) -> dict[str, workflow.Flow]:
        return {f"f{n}": workflow.Flow(f"f{n}", "condition", "", then=(f"f{n + 1}",)) for n in range(count)}

    def takes(count: int) -> dict[str, workflow.Flow]:
        before = {f"f{n}": {"A": workflow.Take(f"f{n - 1}", "x")} for n in range(count)}
        return {name: workflow.Flow(name, "script", "", takes=taken) for name, taken in before.items()}

    def omit(flows: dict[str, workflow.Flow]) -> None:
        for _ in range(16):  # so that a few conditions take long enough
            assert workflow.omitted_with(flows, ["f0"]) == tuple(flows)

    assert_linear(omit, conditions)
    assert_linear(omit, takes)


DEEP = 10_000


@every(
    "keys, code",
    [
        (f"kind: condition\nif: {'(' * DEEP}true{')' * DEEP}\nthen: none", "workflow.bad-condition"),
        (f"kind: condition\nif: '{'[' * DEEP}'\nthen: none", "workflow.bad-condition"),
        (f"kind: script\nrun: 'true'\nneeds: {'[' * DEEP}{']' * DEEP}", "plan.too-deep"),
    ],
)
def test_deep_nesting_is_a_finding(keys: str, code: str) -> None:
    assert [found for found, _ in errors(step(keys))] == [code]


@given(st.binary(max_size=200), st.integers(0, 10_000))
def test_no_changed_byte_makes_the_parser_raise(noise: bytes, at: int) -> None:
    data = example().encode()
    at %= len(data)
    for changed in (data[:at] + noise + data[at:], data[:at] + noise + data[at + len(noise) :], data[:at]):
        result = workflow_parser.parse(changed, "x.md")
        assert (result.plan is None) == any(finding.severity == "error" for finding in result.findings)
        if result.plan is not None:
            assert replace(result.plan) == result.plan
