"""R-PLAN-2: plans of GSD and of the first iDumb, read as they are. `cases/dialects` has most of what they say."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from idumb.domain import contract
from idumb.domain.plans.plan import Plan
from idumb.markdown.plans import plan_parser
from tests.format import golden
from tests.support.cases import every
from tests.support.growth import assert_linear
from tests.support.seed import one_on_a_push

HEAD = "---\nphase: 03-greet\nplan: 02\ntype: execute\nwave: 1\ndepends_on: []\nautonomous: true\n---\n"
PATH = ".planning/phases/03-greet/03-02-PLAN.md"
BODY = (
    "<name>Task 1: Greet</name>\n<files>a.py</files>\n<action>Do it</action>\n"
    "<verify><automated>true</automated></verify>"
)


def read(text: str, path: str = PATH) -> tuple[Plan | None, list[tuple[str, int]]]:
    parsed = plan_parser.parse(text.encode(), path)
    assert parsed.text == text
    return parsed.plan or parsed.draft, [(f.code, f.line) for f in parsed.findings]


def tagged(*tasks: str, head: str = HEAD) -> str:
    return head + "\n<tasks>\n" + "\n".join(tasks) + "\n</tasks>\n"


def task(children: str = BODY, attributes: str = ' type="auto"') -> str:
    return f"<task{attributes}>\n{children}\n</task>\n"


LONG: dict[str, Callable[[int], str]] = {
    "tabs in a line of files": lambda n: tagged(*[task(BODY.replace("a.py", "x" + "\t" * n + "x"))] * 4),
    "notes inside a line of files": lambda n: tagged(task(BODY.replace("a.py", "x" + " (a)" * n + "x"))),
    "notes behind a line of files": lambda n: tagged(task(BODY.replace("a.py", "x" + " (a)" * n))),
    "opened checks": lambda n: tagged(task(BODY.replace("</verify>", "<automated>\n" * n + "</verify>"))),
    "opened checks by hand": lambda n: tagged(task(BODY.replace("</verify>", "<human>\n" * n + "</verify>"))),
    "opened options": lambda n: tagged(decision("<option>\n" * n)),
    "opened names of options": lambda n: tagged(decision("<option><name>\n" * n)),
    "closing tags inside a line": lambda n: tagged(
        *(task(BODY.replace("</verify>", "\n```bash\ntrue\n```</verify>"), f' id="{one}"') for one in range(n))
    ),
    "number signs": lambda n: headed("## " + "#" * n + "x"),
    "tabs in a heading": lambda n: headed("## a" + "\t" * n + "b"),
    "digits of a task": lambda n: headed("### Task " + "1" * n + "("),
    "letters and digits of a task": lambda n: headed("### Task " + "a" * n + "1" * n + "("),
    "digits of an id": lambda n: headed("### T" + "1" * n + "("),
    "digits of a dependency": lambda n: headed("### T02: A\n\n- **Depends on:** " + "1" * n + "-"),
    "digits of a title": lambda n: headed("### Task 1: Task " + "1" * n + "("),
    "tabs in a title": lambda n: headed("### Task 1: a" + "\t" * n + "x"),
    "tabs in an estimate": lambda n: headed("### Task 1: A\n\n- **Estimate:** a" + "\t" * n + "x"),
}


def headed(line: str) -> str:
    """Several times: a line that is long enough to be measured is too long to be read."""
    return (golden.DIALECTS / "idumb-1-whole.md").read_text().replace("\n## ", f"\n{line}\n" * 4 + "\n## ")


def decision(options: str) -> str:
    return task(f"<name>A</name><options>{options}</options>", ' type="checkpoint:decision"')


@pytest.mark.parametrize("kind", one_on_a_push([*LONG], "a long plan"))
def test_a_long_plan_is_read_in_linear_time(kind: str) -> None:
    assert_linear(lambda text: plan_parser.parse(text, PATH), lambda n: LONG[kind](n).encode())


def test_needed_plans_and_lower_waves_run_first() -> None:
    def plan(number: str, wave: int, *needed: str) -> Plan:
        head = HEAD.replace("plan: 02", f"plan: {number}").replace("wave: 1", f"wave: {wave}")
        head = head.replace("[]", f"[{', '.join(needed)}]")
        read_plan, findings = read(tagged(task(), head=head), f".planning/phases/03-greet/03-{number}-PLAN.md")
        assert read_plan is not None
        assert findings == []
        return read_plan

    # 04 has the lowest wave and needs 03: what it says itself is stronger.
    plans = contract.in_waves(
        [plan("01", 1), plan("02", 2), plan("03", 2, "03-01", "2"), plan("04", 1, "03-03-PLAN.md")]
    )
    assert {p.plan: p.depends_on for p in plans} == {"01": (), "02": ("01",), "03": ("01", "02"), "04": ("03",)}


@every(
    "path, phase, plan, id",
    [
        (PATH, "03", "02", "T03-0201"),
        (".planning/phases/CK-03-greet/03-02-PLAN.md", "03", "02", "T03-0201"),
        (".planning/phases/03-greet/PLAN.md", "03", "02", "T03-0201"),
        (".planning/phases/03-greet/03-02.1-fix-PLAN.md", "03", "02.1", "T03-020101"),
        (".planning/phases/B/PLAN.md", "B", "02", "TB-0201"),
        (".planning/quick/7-fix/PLAN.md", "Q7", "02", "TQ7-0201"),
        ("notes/plan.md", "03", "02", "T03-0201"),
    ],
)
def test_phase_and_plan_come_from_the_place_of_the_file(path: str, phase: str, plan: str, id: str) -> None:
    parsed, _ = read(tagged(task()), path)
    assert parsed is not None
    assert (parsed.phase, parsed.plan) == (phase, plan)
    assert parsed.tasks[0].id == id
