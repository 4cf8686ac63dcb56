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
from tests.meta import source
from tests.support.cases import every
from tests.support.growth import assert_linear

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


def test_a_file_without_frontmatter_is_told_what_a_definition_starts_with() -> None:
    (finding,) = parsed("", "# Title\n").findings
    assert (finding.code, finding.message) == ("plan.no-frontmatter", "The file does not start with frontmatter")
    assert finding.fix == "start the file with ---, type: workflow, name, version, description and ---"


def test_the_example_of_the_page_becomes_tasks_of_the_same_contract() -> None:
    """R-PLAN-8."""
    plan = workflow_parser.parse(example().encode(), "greet.md").plan
    assert plan is not None
    assert plan.workflow is not None
    assert (plan.workflow.name, plan.workflow.version) == ("greet", "1.0.0")
    words, is_loud, shout = plan.tasks
    assert [task.depends_on for task in plan.tasks] == [(), ("TW0-01",), ("TW0-02", "TW0-01")]
    assert words.flow is not None
    assert words.flow.outputs == (workflow.Value("words", "text", file="greeting.txt", line=22),)
    assert words.steps[0].scope == ("greeting.txt",)
    assert is_loud.flow is not None
    assert is_loud.flow.then == (shout.id,)
    assert shout.flow is not None
    assert shout.flow.takes == {"WORDS": workflow.Take("TW0-01", "words")}


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


# fmt: off
MISTAKES = [
    ("", [("workflow.no-steps", 1)]),
    ("### one: The first\n", [("workflow.step-without-fence", 11), ("workflow.no-steps", 1)]),
    (f"```yaml step\n{SCRIPT}\n```\n", [("workflow.step-without-heading", 11), ("workflow.no-steps", 1)]),
    (step(SCRIPT) + f"```yaml step\n{SCRIPT}\n```\n", [("workflow.step-without-heading", 18)]),
    (step(SCRIPT, "One"), [("workflow.bad-heading", 11)]),
    (step(SCRIPT, "one") + step(SCRIPT, "one"), [("workflow.duplicate-step", 18)]),
    ("# No phase\n\n" + step(SCRIPT), [("workflow.no-phase", 13)]),
    (step(SCRIPT) + "```yaml steps\nkind: script\n```\n", [("workflow.fence-near-miss", 18)]),
    (step(SCRIPT) + "```yaml\nkind: script\n```\n", [("workflow.fence-near-miss", 18)]),
    (step(SCRIPT) + "- a list\n\n  ```yaml step\n  kind: script\n  ```\n", [("workflow.fence-near-miss", 20)]),
    (step(SCRIPT) + "```yaml run\ninputs: {}\n```\n", [("workflow.bad-run", 18)]),
    (step(""), [("workflow.empty-step", 13)]),
    (step("run: 'true'"), [("workflow.bad-kind", 14)]),
    (step("kind: scrip\nrun: 'true'"), [("workflow.bad-kind", 14)]),
    (step("kind: script"), [("workflow.no-script", 11)]),
    (step(f"{SCRIPT}\nsteps: []"), [("workflow.no-script", 11), ("steps.empty", 16)]),
    (step(f"{SCRIPT}\nretrys: 1"), [("workflow.unknown-key", 16)]),
    (step(f"{SCRIPT}\noptions: {{a: b}}"), [("workflow.unknown-key", 16)]),
    (step(f"{SCRIPT}\nfiles:"), [("workflow.empty-value", 16)]),
    (step(f"{SCRIPT}\nretries: some"), [("workflow.bad-value", 16)]),
    (step(f"{SCRIPT}\ncontinue_on_error: maybe"), [("workflow.bad-value", 16)]),
    (step(f"{SCRIPT}\ntimeout: soon"), [("field.bad-duration", 16)]),
    (step(f"{SCRIPT}\ntimeout_action: wait"), [("field.bad-choice", 16)]),
    (step(f"{SCRIPT}\nneeds: [two]"), [("workflow.unknown-step", 16)]),
    (step(f"{SCRIPT}\ntakes: {{A: one.b}}"), [("workflow.unknown-output", 16)]),
    (step(f"{SCRIPT}\ntakes: {{a: one.outcome}}"), [("workflow.bad-name", 16)]),
    (step(f"{SCRIPT}\ntakes: {{INPUT_X: one.outcome}}"), [("workflow.bad-name", 16)]),
    (step(f"{SCRIPT}\noutputs: {{A: text}}"), [("workflow.bad-name", 16)]),
    (step(f"{SCRIPT}\noutputs: {{outcome: text}}"), [("workflow.bad-name", 16)]),
    (step(f"{SCRIPT}\noutputs: {{a: txt}}"), [("workflow.bad-value", 16)]),
    (step(f"{SCRIPT}\noutputs: {{a: {{type: txt}}}}"), [("workflow.bad-type", 16)]),
    (step(f"{SCRIPT}\noutputs: {{a: {{type: choice}}}}"), [("workflow.bad-choices", 16)]),
    (step(f"{SCRIPT}\noutputs: {{a: {{type: text, file: ../a}}}}"), [("workflow.bad-file", 16)]),
    (step(f"{SCRIPT}\noutputs: {{a: {{type: text, key: a}}}}"), [("workflow.bad-file", 16)]),
    (step(f"{SCRIPT}\nfiles: {{create: ['{{inputs.wrod}}']}}"), [("workflow.unknown-input", 16)]),
    (step("kind: condition\nthen: [one]"), [("workflow.no-condition", 11)]),
    (step("kind: condition\nif: inputs.wrod == 'a'\nthen: none"), [("workflow.bad-condition", 15)]),
    (step("kind: condition\nif: 'true'"), [("workflow.no-condition", 11)]),
    (step("kind: condition\nif: 'true'\nthen: [two]\nelse: [two]") + step(SCRIPT, "two"),
     [("workflow.two-branches", 17)]),
    (step("kind: human\nask: nothing"), [("workflow.bad-value", 15)]),
    (step("kind: human\nask: decision"), [("workflow.no-options", 11)]),
    (step("kind: human\nask: action\noptions: {a: b}"), [("workflow.no-options", 11)]),
    (step("kind: agent"), [("task.no-acceptance", 11)]),
    (step("kind: agent\nagent: two words\nacceptance: [{text: a, human: true}]"), [("field.bad-name", 15)]),
]
# fmt: on


def test_every_mistake_in_a_step_is_reported_at_its_line() -> None:
    found = [(body, expected, parsed(body)) for body, expected in MISTAKES]
    assert [
        (body, result.findings)
        for body, expected, result in found
        if sorted((finding.code, finding.line) for finding in result.findings) != sorted(expected) or result.plan
    ] == []
    assert all(finding.fix or finding.accepted for _, _, result in found for finding in result.findings)


# fmt: off
MISTAKES_OF_THE_HEAD = [
    ("type: workflow", "type: plan", ("workflow.bad-value", 2)),
    ("name: x", "name: X y", ("workflow.bad-value", 3)),
    ("version: 1", "version: a b", ("workflow.bad-value", 4)),
    ("description: Tries things.\n", "", ("workflow.missing-key", 1)),
    ("inputs:", "input:", ("workflow.unknown-key", 6)),
    ("  word: text", "  word: list", ("workflow.bad-value", 7)),
    ("  word: text", "  word: {type: integer, default: a}", ("workflow.bad-default", 7)),
    ("  word: text", "  word: {type: choice, choices: [a, a]}", ("workflow.bad-choices", 7)),
    ("  word: text", "  word: {type: text, file: a}", ("workflow.unknown-key", 7)),
    ("inputs:", "scope: all\ninputs:", ("workflow.bad-value", 6)),
]
# fmt: on


def test_every_mistake_in_the_frontmatter_is_reported_at_its_line() -> None:
    found = [
        (new, expected, errors(step(SCRIPT), HEAD.replace(old, new))) for old, new, expected in MISTAKES_OF_THE_HEAD
    ]
    assert [row for row in found if row[2] != [row[1]]] == []
    assert errors(step(f"{SCRIPT}\nx-mine: 1"), HEAD.replace("inputs:", "x-mine: 1\ninputs:")) == []


def test_every_code_of_workflows_has_a_test() -> None:
    own = Path(__file__).read_text(encoding="utf-8")
    assert [code for code in catalog.ROWS if code.startswith("workflow.") and f'"{code}"' not in own] == []


def test_a_definition_that_cannot_be_read_has_a_finding_and_no_plan(tmp_path: Path) -> None:
    file = DefinitionFile("x", "repository", ".idumb/workflows/x.md", b"", "Permission denied")
    (finding,) = DefinitionFolders(str(tmp_path)).parse(file).findings
    assert (finding.code, finding.severity, finding.place) == ("workflow.unreadable", "error", f"{file.path}:1")
    assert finding.message == "The file cannot be read: Permission denied"


def test_a_definition_must_have_the_name_of_its_file() -> None:
    result = workflow_parser.parse((HEAD + step(SCRIPT)).encode(), "y.md", "y")
    assert [finding.code for finding in result.findings] == ["workflow.other-name"]


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
        (f"kind: condition\nif: {'(' * 400}true{')' * 400}\nthen: none", "workflow.bad-condition"),
        (f"kind: condition\nif: {'not ' * 200}true\nthen: none", "workflow.bad-condition"),
        (f"kind: condition\nif: '{'[' * DEEP}'\nthen: none", "workflow.bad-condition"),
        (f"kind: script\nrun: 'true'\nneeds: {'[' * DEEP}{']' * DEEP}", "plan.too-deep"),
        ("kind: script\nrun: 'true'\nx-a: &a [1]\nx-b: *a", "yaml.anchor"),
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
