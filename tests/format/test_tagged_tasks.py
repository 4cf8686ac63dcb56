"""R-PLAN-2: tasks in GSD's tags become tasks of the contract, and what is not understood is reported at its line."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from idumb.domain import contract
from idumb.domain.plans.plan import CHECK, HUMAN, UNPROVEN, VERIFY, FileClaim, Plan, Setup, Task
from idumb.markdown.plans import plan_parser
from tests.support.cases import every
from tests.support.growth import assert_linear

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


def only_task(children: str, attributes: str = ' type="auto"') -> Task:
    plan, findings = read(tagged(task(children, attributes)))
    assert plan is not None
    assert findings == []
    (only,) = plan.tasks
    return only


def test_every_part_of_a_tagged_task_has_its_place_in_the_contract() -> None:
    only = only_task(
        "  <name>Task 1: Greet `people`</name>\n  <files>src/a.py, `src/b.py` (new),\n    old.py (delete)</files>\n"
        "  <read_first>\n  - docs/a.md\n  </read_first>\n  <behavior>\n  - Test 1: hello\n  - Test 2: bye,\n    long\n"
        "  </behavior>\n  <action>\n    Write it.\n\n    ```py\n    x = 1 < 2\n    ```\n  </action>\n"
        "  <verify>\n    <automated>pytest -q &amp;&amp; true</automated>\n    Look at it\n  </verify>\n"
        "  <acceptance_criteria>\n  - It greets\n  </acceptance_criteria>\n  <done>It is\n  there</done>"
    )
    assert (only.id, only.title, only.depends_on) == ("T03-0201", "Greet `people`", ())
    assert only.files == (
        FileClaim("change", "src/a.py"),
        FileClaim("change", "src/b.py"),
        FileClaim("delete", "old.py"),
    )
    assert only.verify == ("pytest -q && true",)
    assert [c.text for c in only.acceptance] == ["Test 1: hello", "Test 2: bye, long", "It greets", "It is there"]
    assert {c.proof for c in only.acceptance} == {VERIFY}
    assert "    x = 1 < 2" not in only.description
    assert "```py\nx = 1 < 2\n```" in only.description
    assert only.references == "Read first:\n- docs/a.md"


@every(
    "line, verb",
    [
        *(("a.py (new) (deleted)", "delete"), ("a.py (deleted) (new)", "delete"), ("a.py ( Removed ) # old", "delete")),
        *(("a.py - as in b (delete)", "change"), ("a.py (x - y)", "change")),
    ],
)
def test_a_note_in_brackets_behind_a_path_says_that_it_goes(line: str, verb: str) -> None:
    assert only_task(BODY.replace("a.py", line)).files == (FileClaim(verb, "a.py"),)


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
}


def decision(options: str) -> str:
    return task(f"<name>A</name><options>{options}</options>", ' type="checkpoint:decision"')


@pytest.mark.parametrize("kind", LONG)
def test_a_long_plan_is_read_in_linear_time(kind: str) -> None:
    assert_linear(lambda text: plan_parser.parse(text, PATH), lambda n: LONG[kind](n).encode())


def test_tasks_of_one_plan_run_in_document_order_with_stable_ids() -> None:
    first, _ = read(tagged(task(), task(), task()))
    assert first is not None
    assert [(t.id, t.depends_on) for t in first.tasks] == [
        ("T03-0201", ()),
        ("T03-0202", ("T03-0201",)),
        ("T03-0203", ("T03-0202",)),
    ]
    again, _ = read(tagged(task(), task(), task()), "elsewhere/03-02-PLAN.md")
    assert again is not None
    assert [t.id for t in again.tasks] == [t.id for t in first.tasks]


@every("type, kind", [("checkpoint:human-verify", "human-verify"), ("checkpoint:human-action", "human-action")])
def test_a_checkpoint_is_a_task_for_a_person(type: str, kind: str) -> None:
    only = only_task(
        "<what-built>A page</what-built>\n<how-to-verify>\n1. Open it\n</how-to-verify>", f' type="{type}"'
    )
    assert (only.kind, only.files) == (kind, None)
    assert "How to verify:\n1. Open it" in only.description
    assert only.title == "A page"


def test_a_decision_has_its_options() -> None:
    only = only_task(
        '<decision>Which?</decision>\n<options>\n<option id="a"><name>One</name><pros>Fast</pros></option>\n'
        '<option id="b"><name>Two</name></option>\n</options>',
        ' type="checkpoint:decision" gate="blocking"',
    )
    assert only.kind == "decision"
    assert [(o.id, o.text) for o in only.options] == [("a", "One; pros: Fast"), ("b", "Two")]
    assert only.notes == "gate: blocking"


@every(
    "verify, commands",
    [
        ("`pytest -q`", ("pytest -q",)),
        ("- `a`\n- `b c`", ("a", "b c")),
        ("```bash\nset -e\ntrue\n```", ("set -e\ntrue",)),
        ("Run `pytest`", ()),
        ("pytest -q passes", ()),
        ("<automated>MISSING: write the test first</automated>", ()),
        ("<automated>`pytest`</automated>", ("pytest",)),
        ("<automated>`a b`, `c`; `d` && `e`</automated>", ("a b", "c", "d", "e")),
        ("`make build` succeeds - `make lint` passes - read: `cat a`", ()),
        ("<automated>`make test` and `make lint`</automated>", ()),
        ("<automated>npm test, then look at the page</automated>", ()),
        ("<automated>echo 'a, then b' && true</automated>", ("echo 'a, then b' && true",)),
        (
            "<automated>cat > a <<'E'\nfirst, then second\nE\ngrep -q first a</automated>",
            ("cat > a <<'E'\nfirst, then second\nE\ngrep -q first a",),
        ),
        (
            "<automated># build, then test\nmake # all, and more\nmake test</automated>",
            ("# build, then test\nmake # all, and more\nmake test",),
        ),
        ("- `../x` becomes `_x`\n- `true`", ()),
        ("```python\nprint(1)\n```", ()),
    ],
)
def test_only_what_its_author_marked_as_a_command_is_a_check(verify: str, commands: Sequence[str]) -> None:
    """R-RUN-3, R-LOCK-7: a command is never inferred; a task without one is for a person to accept."""
    only = only_task(f"<name>A</name><files>a</files><action>b</action><verify>{verify}</verify><done>It works</done>")
    assert only.verify == commands
    assert {c.proof for c in only.acceptance} == {VERIFY if commands else UNPROVEN}
    assert only.on_failure == (None if commands else "ask")


def test_a_sentence_about_commands_is_kept_as_a_criterion() -> None:
    only = only_task("<name>A</name><verify><automated>`make test` and `make lint`</automated></verify>")
    assert [(c.text, c.proof) for c in only.acceptance] == [("`make test` and `make lint`", UNPROVEN)]


def test_a_check_by_hand_is_a_question_to_a_person() -> None:
    only = only_task("<name>A</name><verify><automated>true</automated><human-check>Look</human-check></verify>")
    assert [(c.text, c.proof) for c in only.acceptance] == [("Look", HUMAN)]


EXAMPLE = '```xml\n<task type="auto">\n<name>Not a task</name>\n<action>x</action>\n</task>\n```'


@every(
    "action",
    [
        EXAMPLE,
        f"````markdown\n{EXAMPLE}\n````",
        "```markdown\n```bash\nx\n```\nno end of the first fence",
        '<task type="auto">\n<name>Not fenced</name>\n</task>',
        "Write `</action>` and `</task>` and `<task>`.",
        "if (a < b && c > d) { return <div/> }",
        "<!-- </action> is\nno tag --> x",
    ],
)
def test_examples_in_a_task_are_text(action: str) -> None:
    if action.startswith("<!--"):
        action = action.replace("</action>", "`</action>`")
    text = tagged(task(BODY.replace("Do it", action)), task())
    plan, findings = read(text)
    assert plan is not None
    assert ([t.title for t in plan.tasks], findings) == (["Greet", "Greet"], [])
    assert action.split("\n")[0] in plan.tasks[0].description


# fmt: off
MISTAKES = [
    (tagged(task().replace("</task>", "")), ("dialect.never-closed", 11)),
    (tagged(task().replace("</action>", "")), ("dialect.never-closed", 14)),
    (tagged(task()).replace("</tasks>", ""), ("dialect.never-closed", 10)),
    (tagged(task(BODY + "\n<hint>a</hint>")), ("dialect.unknown-tag", 16)),
    (tagged(task(attributes=' type="auto" owner="me"')), ("dialect.unknown-attribute", 11)),
    (tagged(task(attributes=' type="deploy"')), ("dialect.unknown-type", 11)),
    (tagged(task(), "Remember the tests."), ("dialect.stray-text", 18)),
    (tagged(task(), head=HEAD.replace("wave: 1", "wave: soon")), ("dialect.bad-value", 5)),
    (tagged(task(), head=HEAD.replace("wave", "color: red\nwave")), ("dialect.unknown-key", 5)),
    (tagged(task(), head=HEAD.replace("[]", "[Phase 2 is ready]")), ("dialect.unread-dependency", 6)),
    (tagged(task(), head=HEAD.replace("[]", "[02-01]")), ("dialect.unread-dependency", 6)),
    (tagged(task(BODY.replace("a.py", "~/a.py"))), ("dialect.unread-path", 13)),
    (tagged(task(BODY.replace("a.py", "the new file"))), ("dialect.unread-path", 13)),
    (tagged(task(BODY.replace("a.py", ".planning/STATE.md"))), ("dialect.unread-path", 13)),
    (tagged(task(), head=HEAD.replace("03-greet", "04-greet")), ("dialect.other-phase", 2)),
    (tagged(task(), head=HEAD.replace("wave: 1", "wave: [1")), ("yaml.unreadable", 6)),
    (tagged(task(), head=HEAD.replace("\n---\n", "\n")), ("plan.frontmatter-never-closed", 1)),
    (tagged(task("x" * 70_000)), ("plan.line-too-long", 12)),
]
# fmt: on


def test_what_is_not_understood_is_reported_at_its_line() -> None:
    found = [(finding, read(text)[1]) for text, finding in MISTAKES]
    assert [row for row in found if row[0] not in row[1] or len(row[1]) > 2] == []


def test_must_haves_are_the_success_criteria() -> None:
    must_haves = (
        "must_haves:\n  truths:\n    - It greets: everybody\n    - A\n  artifacts:\n    - path: a's.py\n"
        "      provides: A greeting\n      min_lines: 3\n      contains: def greet\n  key_links:\n"
        "    - {from: a.py, to: b.py, via: import}\n---\n"
    )
    plan, findings = read(tagged(task(), head=HEAD.removesuffix("---\n") + must_haves))
    assert plan is not None
    assert findings == []
    assert [(c.text, c.proof) for c in plan.success_criteria] == [
        ("It greets: everybody", HUMAN),
        ("A", HUMAN),
        ("a's.py: A greeting", CHECK),
        ("a.py is connected to b.py via import", HUMAN),
    ]
    command = """test -e 'a'"'"'s.py' && grep -qF -e 'def greet' -- 'a'"'"'s.py' && """
    assert plan.success_criteria[2].command == command + """test "$(wc -l < 'a'"'"'s.py')" -ge 3"""


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
    assert {p.plan: p.depends_on for p in plans} == {
        "01": (),
        "02": ("01",),
        "03": ("01", "02"),
        "04": ("03",),
    }


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


@every("text", [tagged(task()), tagged(task()).replace("\n", "\r\n"), "\ufeff" + tagged(task())])
def test_line_ends_and_a_byte_order_mark_change_nothing(text: str) -> None:
    plan, findings = read(text)
    assert plan is not None
    assert ([t.id for t in plan.tasks], plan.tasks[0].verify, findings) == (["T03-0201"], ("true",), [])


def test_an_idumb_plan_with_a_tag_in_it_stays_one() -> None:
    text = '---\ntype: plan\nphase: "1"\nplan: "01"\ntitle: T\ngoal: G\n---\n\n<task>\n'
    assert plan_parser.dialect_of(text.split("\n")) is None


def test_each_item_of_a_list_under_done_is_a_criterion() -> None:
    text = HEAD + '<task type="auto"><name>A</name><done>\n- one\n  more\n- two\n</done></task>\n'
    plan = plan_parser.parse(text.encode(), ".planning/phases/03-greet/03-02-PLAN.md").plan
    assert plan
    assert [criterion.text for criterion in plan.tasks[0].acceptance] == ["one more", "two"]


def test_the_frontmatter_names_files_what_must_be_set_up_and_what_only_people_see() -> None:
    head = HEAD.replace("plan: 02", "plan: second").removesuffix("---\n") + (
        "files_modified: [a.py, b-c]\nuser_setup:\n  - service: mail\n    why: it sends\n"
        "    env_vars: [{name: MAIL_KEY}, not a name]\n    dashboard_config: [{task: Make a key, place: [a, b]}]\n"
        "must_haves:\n  artifacts: [all pages]\n  key_links: [a.py calls b.py]\n---\n"
    )
    plan, findings = read(tagged(task("<name>A</name><action>b</action><done>c</done>"), head=head), "notes/plan.md")
    assert plan is not None
    assert [(t.id, t.files) for t in plan.tasks] == [("T03-0001", (FileClaim("change", "a.py"),))]
    assert plan.setup == (Setup("mail", "it sends", ("MAIL_KEY",), "task: Make a key; place: a, b"),)
    assert [(c.text, c.proof) for c in plan.success_criteria] == [("all pages", HUMAN), ("a.py calls b.py", HUMAN)]
    assert findings == [("dialect.unread-path", 8)]


def test_a_task_in_a_fence_is_an_example_and_the_next_one_is_not() -> None:
    plan, findings = read(f"{HEAD}\n```xml\n{task()}```\n\n{task()}")
    assert plan is not None
    assert ([t.id for t in plan.tasks], findings) == (["T03-0201"], [])
