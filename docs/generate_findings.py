"""Writes docs/findings.md from the checks, their examples and the suite of the plan format.

`python docs/generate_findings.py`; a test checks the page, and that every example shows its finding.
"""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from idumb.app.contract import loading
from idumb.app.ports.planning import ParsedPlan
from idumb.domain.finding import Finding
from idumb.domain.intake import registry
from idumb.domain.intake.rule import Example, Rule
from idumb.domain.plans import policy as policies
from idumb.domain.settings import Settings
from idumb.markdown.importers import step_plan
from idumb.markdown.plans import plan_parser
from idumb.markdown.settings import configuration, policy

DOCS = pathlib.Path(__file__).resolve().parent
PAGE = DOCS / "findings.md"
CASES = DOCS.parent / "tests" / "format" / "cases"
SHOWN = 100

HEAD = '---\ntype: plan\nphase: "1"\nplan: "{plan}"\ntitle: A greeting\ngoal: The project greets\n{more}---\n\n'
TASK = "### {id}: Greet\n\n{fields}- **Acceptance:**\n  - [ ] It greets — check: `true`\n"

INTRODUCTION = """\
# Findings

Made from the program by `python docs/generate_findings.py`; do not edit by hand. Every example on this page is tried by
a test.

`idumb check-plan N` prints every finding of a phase as `path:line: severity: message [code]`, with what was found, what
is accepted and the mend. With one error the exit code is 3 and the phase cannot run; warnings stop nothing. With
`--json` they are `data.findings`. Codes are stable, wording is not.

`idumb check-plan N --mode strict` judges a guided phase as if it were strict. `--verbose` adds the hashes, the
self-check and the next free id.

## Hashes

`check-plan --verbose` prints the SHA-256 of each plan's bytes, which `sha256sum PLAN` gives too, and the hash of the
phase: the SHA-256 of these lines, in the order in which they are printed. From the root of the repository:

    sha256sum .planning/phases/1/*PLAN.md | sha256sum

(Where there are ten plans and more, and their numbers have no zeros in front, name them in the order of the numbers.)
The contract hash is bound to plans, configuration and policy, and is what consent is given to. `idumb check-plan N
--hash HASH` refuses with exit 4 unless HASH is that of the phase, of its contract or of its only plan.

## Self-check

Ten questions are answered from the findings, with yes, no or *not judged* and the evidence (`data.self_check`). In
strict mode every finding that makes an answer no is an error, so a no refuses the plan. What is not judged is for
`idumb approve N --answer QUESTION=yes`, which a strict plan needs; `data.open_questions` has it, with each requirement
that the plan lists without a text and `.planning/REQUIREMENTS.md` does not have.

{questions}
"""

CHECKS = """\
## Checks of a legal plan

What a check is in guided and in strict mode; *none* says nothing there. What stands in backticks or quotes is never
judged as prose: at most strict mode warns of it. That each step is one tool call with all its arguments is the format's
business, below. Of a command of a `run` step only what a shell would execute is judged, not its comments, quoted text
or here-documents.

Files, links, protected files and programs (`path.missing` and the like) are judged as they are where the run begins: in
the tree of an unfinished run, else in the work tree, as the tasks before would leave it. Completed tasks are exempt.

What is said of a plan's words (`text.*`, `step.not-deterministic`, `step.branch`) stops no plan whose very bytes a
strict approval is bound to or a strict run locked: there it is a warning. In an amended plan that holds for the words
that were there before.
"""

GRAPH = """\
## The plans of a phase together

Always errors.
"""

FORMAT = """\
## The format

Each with a line of the smallest case of the suite that shows it; [plan-format.md](plan-format.md) has what is accepted.
Errors, but for those marked.
"""


@dataclass(frozen=True, slots=True)
class Phase:
    """Plans of one folder that show a finding together; `shown` says what they are in words."""

    shown: str
    plans: tuple[str, ...]


def plan(*tasks: str, number: str = "01", more: str = "") -> str:
    return HEAD.format(plan=number, more=more) + "## Tasks\n\n" + "\n".join(tasks)


def task(id: str, after: str = "none") -> str:
    return TASK.format(id=id, fields=f"- **Depends on:** {after}\n")


TOGETHER: Mapping[str, Phase] = {
    "task.unknown-dependency": Phase("T1-01 depends on T1-07, which is not there", (plan(task("T1-01", "T1-07")),)),
    "task.self-dependency": Phase("T1-01 depends on T1-01", (plan(task("T1-01", "T1-01")),)),
    "plan.cycle": Phase(
        "T1-01 depends on T1-02 and T1-02 on T1-01", (plan(task("T1-01", "T1-02"), task("T1-02", "T1-01")),)
    ),
    "task.unreachable": Phase(
        "T1-03 depends on T1-01, which depends on T1-02, and that on T1-01",
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
            plan(*(task(f"T1-{n:02}") for n in range(1, 10_001))),
            plan(task("T1-10001"), number="02"),
        ),
    ),
}
"""`plan.other-folder` needs folders: a plan of phase 2 in the folder of phase 1."""

# What no case of the suite shows, as (file name, text).
SHOWN_HERE: Mapping[str, tuple[str, str]] = {
    "criterion.not-text": (
        "01-PLAN.md",
        plan("```yaml task\nid: T1-01\ntitle: Greet\nacceptance: [[It greets]]\n```\n"),
    ),
    "criterion.unknown-key": (
        "01-PLAN.md",
        plan("```yaml task\nid: T1-01\ntitle: Greet\nacceptance: [{text: It greets, chek: 'true'}]\n```\n"),
    ),
    "plan.foreign-format": (
        "01-PLAN.md",
        "---\nphase: 01-greet\nplan: 01\ntype: execute\nwave: 1\nautonomous: true\n---\n",
    ),
    "plan.second-criteria": (
        "01-PLAN.md",
        plan(task("T1-01"))
        + "\n## Success criteria\n\n- [ ] It greets — human\n\n## Success criteria\n\n- [ ] a — human\n",
    ),
    "plan.too-large": ("01-PLAN.md", plan(task("T1-01")) + "\n" * (32 * 1024 * 1024)),
    "plan.too-many-tasks": ("01-PLAN.md", plan(*(task(f"T1-{n:02}") for n in range(1, 10_002)))),
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
    """Everything that is found in the plan of an example."""
    text = HEAD.format(plan="01", more=example.head) + "## Tasks\n\n" + example.task
    known = policies.NONE
    if example.policy:
        read, problems = policy.read(example.policy.encode())
        assert read is not None, problems
        known = read
    settings, problems = configuration.read(example.config.encode())
    assert settings is not None, problems
    parsed = plan_parser.parse(text.encode(), "01-PLAN.md")
    loaded = loading.assemble("1", "folder", [("01-PLAN.md", parsed)], settings, policy=known)
    if loaded.contract is None:
        return loaded.findings
    found = registry.findings(
        loaded.contract, settings, known, mode, repositories=example.repositories, present=example.present
    )
    return (*loaded.findings, *found)


def of_phase(phase: Phase) -> tuple[Finding, ...]:
    parsed = [(f"{n:02}-PLAN.md", _parsed(f"{n:02}-PLAN.md", text)) for n, text in enumerate(phase.plans, 1)]
    return loading.assemble("1", "folder", parsed, Settings()).findings


def of_text(name: str, text: str) -> tuple[Finding, ...]:
    return _parsed(name, text).findings


def _parsed(name: str, text: str) -> ParsedPlan:
    parse = plan_parser.parse if name.endswith(".md") else step_plan.parse
    return parse(text.encode(), name)


def of_format() -> Iterator[tuple[Finding, str]]:
    """One finding for each code of the format, in order, with the line that it is about."""
    found: dict[str, tuple[Finding, str]] = {}
    cases = sorted(CASES.glob("*.md"), key=lambda path: (path.stat().st_size, path.name))
    for path in cases:
        data = path.read_bytes()
        for one in plan_parser.parse(data, path.name).findings:
            if one.code not in found:
                found[one.code] = (one, _line(data.decode("utf-8", "replace"), one.line))
    for code, (name, text) in SHOWN_HERE.items():
        one = next(f for f in of_text(name, text) if f.code == code)
        found[code] = (one, name if code == "plan.bad-name" else _line(text, one.line))
    return (found[code] for code in sorted(found))


def _line(text: str, number: int) -> str:
    lines = text.split("\n")
    return lines[number - 1].strip() if number <= len(lines) else ""


def page() -> str:
    from idumb.domain.intake import self_check

    questions = "\n".join(f"1. {one.question} {_codes(one.codes)}" for one in self_check.QUESTIONS)
    parts = [INTRODUCTION.replace("{questions}", questions), CHECKS, _overview()]
    parts += [_rule(rule) for rule in registry.RULES]
    parts += [GRAPH, *_together(), "", FORMAT, *_format(), ""]
    return "\n".join(parts)


def _codes(codes: Iterable[str]) -> str:
    named = ", ".join(f"`{code}`" for code in codes)
    return f"No with {named}." if named else "No finding makes this a no."


def _overview() -> str:
    rows = [
        f"| [`{r.code}`](#{r.code.replace('.', '')}) | {r.guided} | {r.strict} | {r.means} |" for r in registry.RULES
    ]
    return "\n".join(["| code | guided | strict | means |", "|---|---|---|---|", *rows, ""])


def _rule(rule: Rule) -> str:
    example = rule.example
    lines = [f"### {rule.code}", "", rule.means, "", "````markdown", example.task.rstrip("\n"), "````", ""]
    for where, text in (
        ("In the frontmatter", example.head),
        ("With `.idumb/policy/tools.yaml`", example.policy),
        ("With `.idumb/config.yaml`", example.config),
    ):
        if text:
            lines += [f"{where}:", "", "```yaml", text.rstrip("\n"), "```", ""]
    return "\n".join(lines)


def _together() -> list[str]:
    rows = [f"| `{code}` | {phase.shown} |" for code, phase in TOGETHER.items()]
    return [
        "| code | example |",
        "|---|---|",
        *rows,
        '| `plan.other-folder` | a plan says `phase: "2"` in the folder `1` |',
    ]


def _format() -> list[str]:
    rows = []
    for found, line in of_format():
        marked = " (warning)" if found.severity == "warning" else ""
        rows.append(f"| `{found.code}`{marked} | {_cell(line)} | {_prose(found.message)} |")
    return ["| code | the line | what is said of it |", "|---|---|---|", *rows]


def _cell(line: str) -> str:
    """A line as code in a table; runs of backticks inside are fenced by a longer one."""
    text = _safe(line)
    return f"```` {text} ````" if text else ""


def _prose(text: str) -> str:
    return _safe(text)


def _safe(text: str) -> str:
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return (shown if len(shown) <= SHOWN else shown[: SHOWN - 1] + "…").replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.exit(0)
