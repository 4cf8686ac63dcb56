"""Plans that show each finding: of check_examples.py, of the cases of the plan format, and of this module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from idumb.app.contract import loading
from idumb.app.ports import ParsedPlan
from idumb.domain.finding import Finding
from idumb.domain.intake import registry, rule
from idumb.domain.permissions import NO_POLICY
from idumb.domain.settings import Settings
from idumb.markdown import configuration
from idumb.markdown.plan_files import PlanningFolder
from idumb.markdown.plans import plan_parser
from tests.docs.check_examples import Example
from tests.meta import source

CASES = source.ROOT / "tests" / "format" / "cases"

HEAD = '---\ntype: plan\nphase: "1"\nplan: "{plan}"\ntitle: A greeting\ngoal: The project greets\n{more}---\n\n'
TASK = "### {id}: Greet\n\n{fields}- **Acceptance:**\n  - [ ] It greets — check: `true`\n"


@dataclass(frozen=True, slots=True)
class Phase:
    """Plans of one folder that together show a finding; `shown` describes them in words."""

    shown: str
    plans: tuple[str, ...]


def plan(*tasks: str, number: str = "01", more: str = "") -> str:
    return HEAD.format(plan=number, more=more) + "## Tasks\n\n" + "\n".join(tasks)


def task(id: str, after: str = "none") -> str:
    return TASK.format(id=id, fields=f"- **Depends on:** {after}\n")


STEP = '{"tool": "run", "intent": "greet everybody", "arguments": {"argv": ["true"]}}'


def short_task(number: int) -> str:
    return f"- id: T1-{number:02}\n  title: Title\n  acceptance: it works"


TOGETHER: Mapping[str, Phase] = {
    "task.unknown-dependency": Phase("T1-01 depends on T1-07, which does not exist", (plan(task("T1-01", "T1-07")),)),
    "task.self-dependency": Phase("T1-01 depends on T1-01", (plan(task("T1-01", "T1-01")),)),
    "plan.cycle": Phase(
        "T1-01 depends on T1-02 and T1-02 on T1-01", (plan(task("T1-01", "T1-02"), task("T1-02", "T1-01")),)
    ),
    "task.unreachable": Phase(
        "T1-03 depends on T1-01, T1-01 on T1-02, and T1-02 on T1-01",
        (plan(task("T1-01", "T1-02"), task("T1-02", "T1-01"), task("T1-03", "T1-01")),),
    ),
    "task.duplicate-id": Phase(
        "two plans of a phase have a task T1-01", (plan(task("T1-01")), plan(task("T1-01"), number="02"))
    ),
    "plan.duplicate-id": Phase('two plans of a phase say `plan: "01"`', (plan(task("T1-01")), plan(task("T1-02")))),
    "plan.unknown-dependency": Phase(
        '`depends_on: ["07"]`, and the phase has no plan 07', (plan(task("T1-01"), more='depends_on: ["07"]\n'),)
    ),
    "plan.other-phase": Phase(
        'two plans of one folder say `phase: "1"` and `phase: "2"`',
        (plan(task("T1-01")), plan(task("T2-01"), number="02").replace('phase: "1"', 'phase: "2"')),
    ),
    "phase.too-many-tasks": Phase(
        "10,001 tasks in the plans of one phase",
        (
            plan(*map(short_task, range(1, 10_001))),
            plan(task("T1-10001"), number="02"),
        ),
    ),
}
"""`plan.other-folder`, `plan.note` and `plan.misnamed` need folders."""

# Findings without a test case, as (file name, text).
SHOWN_HERE: Mapping[str, tuple[str, str]] = {
    "criterion.not-text": (
        "01-PLAN.md",
        plan("```yaml task\nid: T1-01\ntitle: Greet\nacceptance: [[It greets]]\n```\n"),
    ),
    "criterion.unknown-key": (
        "01-PLAN.md",
        plan("```yaml task\nid: T1-01\ntitle: Greet\nacceptance: [{text: It greets, chek: 'true'}]\n```\n"),
    ),
    "json.unreadable": ("greet.json", '{"steps": [1 2]}'),  # each Python words this alike
    "plan.foreign-format": (
        "01-PLAN.md",
        "# Tasks: greet\n\n## Phase 1: Setup\n\n- [ ] T001 [P] Make src/greet.py\n",
    ),
    "plan.second-criteria": (
        "01-PLAN.md",
        plan(task("T1-01"))
        + "\n## Success criteria\n\n- [ ] It greets — human\n\n## Success criteria\n\n- [ ] a — human\n",
    ),
    "plan.too-large": ("01-PLAN.md", plan(task("T1-01")) + "\n" * (32 * 1024 * 1024)),
    "plan.too-many-tasks": ("greet.json", '{"steps": [\n' + f"{STEP},\n" * 10_000 + f"{STEP}\n]}}"),
    "step.not-a-mapping": ("01-PLAN.md", plan(task("T1-01") + "\n```yaml steps\n- greet\n```\n")),
    "yaml.key": ("01-PLAN.md", plan("```yaml task\nid: T1-01\ntitle: Greet\n? [a, b]\n: c\n```\n")),
    "plan.bad-name": ("my plan.yaml", "steps: []\n"),
    "plan.no-steps": ("greet.yaml", "- {tool: run}\n"),
    "step.unreadable-patch": (
        "greet.yaml",
        "steps:\n- {tool: apply_patch, intent: greet in the readme, arguments: {patch: hello}}\n",
    ),
}


def of_example(example: Example, mode: str = "guided") -> tuple[Finding, ...]:
    """Return all findings in the plan of an example."""
    text = HEAD.format(plan="01", more=example.head) + "## Tasks\n\n" + example.task
    known = NO_POLICY
    if example.policy:
        read, problems = configuration.read_policy(example.policy.encode())
        assert read is not None, problems
        known = read
    settings, problems = configuration.read(example.config.encode())
    assert settings is not None, problems
    parsed = plan_parser.parse(text.encode(), "01-PLAN.md")
    loaded = loading.assemble("1", "folder", [("01-PLAN.md", parsed)], settings, policy=known)
    if loaded.contract is None:
        return loaded.findings
    places = (example.links, example.repositories, example.present)
    case = rule.Case(loaded.contract, settings, known, mode, *places)
    return (*loaded.findings, *registry.findings(case))


def of_phase(phase: Phase) -> tuple[Finding, ...]:
    parsed = [(f"{n:02}-PLAN.md", _parsed(f"{n:02}-PLAN.md", text)) for n, text in enumerate(phase.plans, 1)]
    return loading.assemble("1", "folder", parsed, Settings()).findings


def of_text(name: str, text: str) -> tuple[Finding, ...]:
    return _parsed(name, text).findings


def _parsed(name: str, text: str) -> ParsedPlan:
    return PlanningFolder("").parse(text.encode(), name)


def of_format() -> Iterator[Finding]:
    """Yield one finding for each code of the format, in order."""
    found: dict[str, Finding] = {}
    for path in sorted(CASES.glob("*.md"), key=lambda path: (path.stat().st_size, path.name)):
        for one in plan_parser.parse(path.read_bytes(), path.name).findings:
            found.setdefault(one.code, one)
    for code, (name, text) in SHOWN_HERE.items():
        found[code] = next(f for f in of_text(name, text) if f.code == code)
    return (found[code] for code in sorted(found))
