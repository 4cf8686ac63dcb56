"""The checks of a legal plan, one by one: what they find, and what they leave alone."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from idumb.domain import contract
from idumb.domain.finding import ERROR, Finding
from idumb.domain.intake import registry, scope, self_check
from idumb.domain.intake.rule import SILENT
from idumb.domain.plans.plan import (
    STRICT,
    Criterion,
    FileClaim,
    Interface,
    Invariant,
    Limits,
    NonGoal,
    Plan,
    RollbackClass,
    Scope,
    Setup,
    Span,
    Step,
    Task,
    TestIntent,
)
from idumb.domain.settings import Binding, Policy, Settings

AGENTS = {name: Binding(name, "command", ("true",)) for name in ("agent", "critic")}
SETTINGS = Settings(builder="agent", bindings=AGENTS)
HERE = Span(0, 1, 9)
ABSENT = {"plan.no-requirements", "plan.no-success-criteria", "plan.no-non-goals"}
CHECKED = (Criterion("AC-1", "a file is there", "check", "true", span=Span(0, 1, 12)),)


def task(id: str = "T1-01", **more: Any) -> Task:
    sample = Task(id, "Make a file", files=(FileClaim("create", "a.txt"),), acceptance=CHECKED, span=HERE)
    return dataclasses.replace(sample, **more)


def plan(*tasks: Task, **more: Any) -> Plan:
    sample = Plan("01-PLAN.md", "0" * 64, "1", "01", "T", "G", tasks=tasks or (task(),))
    return dataclasses.replace(sample, **more)


def findings_of(*plans: Plan, mode: str | None = None, policy: Policy | None = None) -> list[Finding]:
    assembled, wrong = contract.assemble("1", "folder", plans, SETTINGS)
    assert assembled is not None, wrong
    return list(registry.findings(registry.case(assembled, SETTINGS, policy or Policy(), mode)))


def codes(*plans: Plan, mode: str | None = None) -> set[str]:
    return {one.code for one in findings_of(*plans, mode=mode)}


def step(tool: str = "run", intent: str = "say hello to everybody", **arguments: Any) -> Step:
    return Step(0, tool, intent, arguments, line=20)


def steps(*single: Step) -> Plan:
    return plan(task(steps=single))


def test_a_plain_task_has_no_finding() -> None:
    """R-LOCK-1."""
    assert findings_of(plan()) == []


# Ambiguity

SAID = [
    ("It is TBD", "text.placeholder"),
    ("tbd", "text.placeholder"),
    ("TODO: write this", "text.placeholder"),
    ("Colours (TODO)", "text.placeholder"),
    ("Which port???", "text.placeholder"),
    ("The format is to be determined", "text.placeholder"),
    ("It knows cats, dogs etc", "text.vague"),
    ("It knows cats (lions, etc.)", "text.vague"),
    ("It counts one, two and so on", "text.vague"),
    ("It uses a queue or similar", "text.vague"),
    ("An appropriate error is shown", "text.vague"),
    ("Errors are handled appropriately", "text.vague"),
    ("It works somehow", "text.vague"),
    ("Caches are cleared as needed", "text.conditional"),
    ("Fix the imports if necessary", "text.conditional"),
    ("It is fast where possible", "text.conditional"),
    ("Add colours if time permits", "text.conditional"),
    ("A nice to have banner", "text.conditional"),
]
NOT_SAID = [
    "It reads /etc/hosts and ~/etc",
    "`etc.` is cut off",
    '"TODO" is a column of the board',
    "The TODO list shows open items",
    "Remove TODO comments from the parser",
    "It fetches and sketches",
    "Inappropriate words are masked",
    "A selector-appropriate header is sent",
    "The possible answers are listed",
    "What is needed is there",
    "An empty title raises an error if it is required",
    "The middle name is optional",
    "Why? is a heading",
    "The order is to be decided by the customer in the shop",
]


@pytest.mark.parametrize(("text", "code"), SAID)
def test_ambiguous_words_are_found_in_titles_criteria_and_intents(text: str, code: str) -> None:
    """R-LOCK-7."""
    criterion = (Criterion("AC-1", text, "check", "true", span=Span(0, 1, 14)),)
    places = (
        (plan(task(title=text)), 9),
        (plan(task(acceptance=criterion)), 14),
        (steps(step(intent=text, command="true")), 20),
        (plan(success_criteria=criterion), 14),
    )
    for one, line in places:
        assert [(f.code, f.severity, f.line) for f in findings_of(one)] == [(code, "warning", line)]
        assert {f.severity for f in findings_of(one, mode=STRICT) if f.code == code} == {ERROR}


@pytest.mark.parametrize("text", NOT_SAID)
def test_words_that_only_look_ambiguous_are_accepted(text: str) -> None:
    """R-LOCK-7."""
    assert codes(plan(task(title=text, acceptance=(Criterion("AC-1", text, "check", "true"),)))) == set()


def test_a_description_may_describe_a_program_that_decides_but_not_be_ambiguous() -> None:
    """R-LOCK-7."""
    assert codes(plan(task(description="Rebuild the index if necessary, with an appropriate lock."))) == set()
    assert codes(plan(task(description="Clear caches as needed."))) == {"text.conditional"}
    assert codes(plan(task(description="Clear caches, indexes etc."))) == {"text.vague"}
    assert codes(plan(task(description="Clear caches.\n\nTBD"))) == {"text.placeholder"}


def _with(text: str) -> dict[str, Plan]:
    """A plan for each place of prose, with this text there."""
    return {
        "goal": plan(goal=text),
        "title": plan(title=text),
        "requirements": plan(task(requirements=("REQ-1",)), requirements={"REQ-1": text}),
        "non-goals": plan(non_goals=(NonGoal("NG-1", text),)),
        "invariants": plan(invariants=(Invariant("INV-1", text, "true"),)),
        "assumptions": plan(assumptions=(text,)),
        "setup": plan(setup=(Setup("mail", text),)),
        "description": plan(task(description=text)),
        "notes": plan(task(notes=text)),
        "tests": plan(task(tests=(TestIntent("true", "fails", "passes", text),))),
        "reason": plan(task(rollback=RollbackClass("irreversible", (), text))),
    }


@pytest.mark.parametrize("place", _with(""))
@pytest.mark.parametrize(
    ("word", "code"),
    [
        ("Colours are TBD", "text.placeholder"),
        ("FIXME later", "text.placeholder"),
        ("It keeps cats, dogs etc.", "text.vague"),
        ("It clears caches as needed", "text.conditional"),
    ],
)
def test_no_text_of_a_strict_plan_may_be_ambiguous(place: str, word: str, code: str) -> None:
    """R-LOCK-7."""
    findings = [f for f in findings_of(_with(word)[place], mode=STRICT) if f.code == code]
    assert [f.severity for f in findings] == [ERROR]
    assert {f.severity for f in findings_of(_with(word)[place]) if f.code == code} == {"warning"}
    quoted = findings_of(_with(f"The marker `{word}` goes")[place], mode=STRICT)
    assert [(f.code, f.severity) for f in quoted if f.code.startswith("text.")] == [("text.quoted", "warning")]


@pytest.mark.parametrize(
    "one",
    [
        plan(task(steps=(step("write_file", path="a.txt", content="# FIXME: colours\n"),))),
        plan(task(steps=(step("edit_file", path="a.txt", find="TBD", replace="blue"),))),
        plan(task(steps=(step(command="grep -c FIXME a.txt"),))),
        plan(task(acceptance=(Criterion("AC-1", "nothing is open", "check", "! grep -q TBD a.txt"),))),
        plan(task(verify=("! grep -q FIXME a.txt",))),
        plan(task(tests=(TestIntent("! grep -q TBD a.txt", "fails", "passes", "nothing is open"),))),
        plan(invariants=(Invariant("INV-1", "nothing is open", "! grep -rq TBD src"),)),
        plan(success_criteria=(Criterion("SC-1", "nothing is open", "check", "! grep -rq TBD src"),)),
    ],
)
def test_ambiguous_words_in_content_patterns_and_checks_are_a_warning_in_strict_mode_only(one: Plan) -> None:
    """R-LOCK-7."""
    findings = [(f.code, f.severity) for f in findings_of(one, mode=STRICT) if f.code.startswith("text.")]
    assert findings == [("text.quoted", "warning")]
    assert codes(one) == set()


@pytest.mark.parametrize(
    ("intent", "doubtful"),
    [
        ("if the tool is missing, skip this", True),
        ("optionally add a banner", True),
        ("add a banner (optional)", True),
        ("write one file or two, depending on the size", True),
        ("if a title is empty raise ValueError", False),
        ("append a counter when the slug is taken", False),
        ("make the middle name optional in the schema", False),
    ],
)
def test_a_conditional_instruction_is_found_and_a_condition_of_the_program_is_not(
    intent: str, *, doubtful: bool
) -> None:
    """R-LOCK-7."""
    assert codes(steps(step(intent=intent, command="true"))) == ({"text.conditional"} if doubtful else set())


@pytest.mark.parametrize("text", ["works", "It works.", "Done", "as expected", "OK", "…", "Works as expected!"])
def test_a_criterion_for_a_person_says_what_to_look_at(text: str) -> None:
    """R-LOCK-7."""
    empty = (*CHECKED, Criterion("AC-2", text, "human", span=Span(0, 1, 15)))
    assert [(f.code, f.line) for f in findings_of(plan(task(acceptance=empty)))] == [("criterion.empty", 15)]
    criteria = (*CHECKED, Criterion("AC-2", text, "human", instructions=("Open the page",)))
    assert codes(plan(task(acceptance=criteria))) == set()
    by_command = (Criterion("AC-1", text, "check", "true"),)
    assert codes(plan(task(acceptance=by_command))) == set()


@pytest.mark.parametrize(("estimate", "long"), [(7200, False), (7201, True), (None, False)])
def test_a_task_of_more_than_two_hours_is_reported(estimate: int | None, *, long: bool) -> None:
    assert codes(plan(task(estimate=estimate))) == ({"task.long-estimate"} if long else set())
    assert codes(plan(task(kind="human-verify", estimate=estimate))) == set()


# Steps


@pytest.mark.parametrize("intent", ["run", "Do it", "write_file", "fix this", "the step", "...", "n/a", "see above"])
def test_an_intent_must_say_more_than_the_tool(intent: str) -> None:
    """R-LOCK-7."""
    assert [(f.code, f.line) for f in findings_of(steps(step(intent=intent, command="true")))] == [
        ("step.vague-intent", 20)
    ]


@pytest.mark.parametrize("intent", ["write the greeting", "fix imports", "make the folder of fixtures", "文件"])
def test_a_short_intent_with_content_is_enough(intent: str) -> None:
    assert codes(steps(step(intent=intent, command="true"))) == set()


@pytest.mark.parametrize(
    "command",
    [
        "echo $RANDOM > a",
        "echo ${RANDOM}",
        "shuf words",
        "sort -R words",
        "head -c 8 /dev/urandom",
        "uuidgen",
        "openssl rand -hex 8",
        "/usr/bin/date",
        "echo $(date) > a",
        "echo `date +%s`",
        "python -c 'import random; print(random.randint(1, 6))'",
        "node -e 'console.log(Math.random())'",
        "node -e 'console.log(Date.now())'",
    ],
)
def test_a_command_that_depends_on_chance_or_clock_is_found(command: str) -> None:
    """R-LOCK-7."""
    assert codes(steps(step(command=command))) == {"step.not-deterministic"}
    assert codes(steps(step(argv=["sh", "-c", command]))) == {"step.not-deterministic"}


@pytest.mark.parametrize(
    "command",
    [
        "echo $RANDOMIZE",
        "pytest -p no:randomly",
        "npm run update",
        "grep -q date notes.txt",
        "shuf --random-source=seed words",
        "python -c 'import random; random.seed(1)'",
        "git log --date=iso",
        "grep -q uuidgen notes.txt",
        "echo '$RANDOM' '$(date)'",
        "echo hello # date",
        "sort words",
    ],
)
def test_a_command_that_only_looks_like_it_is_accepted(command: str) -> None:
    assert codes(steps(step(command=command))) == set()


def test_randomness_in_file_content_is_accepted() -> None:
    assert codes(steps(step("write_file", path="a.txt", content="echo $RANDOM"))) == set()


@pytest.mark.parametrize("command", ["date", "mktemp -d", "curl -s http://localhost", "X=1 wget a", "cd x && ssh host"])
def test_clock_chance_and_network_commands_are_refused_unless_an_assumption_names_task_and_program(
    command: str,
) -> None:
    """R-LOCK-7."""
    (finding,) = [
        f for f in findings_of(steps(step(command=command)), mode=STRICT) if f.code == "step.not-deterministic"
    ]
    assert (finding.severity, finding.line) == (ERROR, 20)
    assert finding.found in finding.mend

    def assuming(text: str) -> set[str]:
        return codes(plan(task(steps=(step(command=command),)), assumptions=(text,)))

    assert assuming(f"T1-01 uses {finding.found}: its output is not kept") == set()
    for other in (
        f"T1-011 uses {finding.found}",
        f"T1-01 uses {finding.found}fs",
        "T1-01 is fast",
        f"{finding.found} is there",
    ):
        assert assuming(other) == {"step.not-deterministic"}


@pytest.mark.parametrize(
    ("command", "branches"),
    [
        ("if test -e a; then echo b; else echo c; fi", ["if"]),
        ("if test -e a; then echo b; fi", ["if"]),
        ("case $X in a) echo b;; esac", ["case"]),
        ("test -e a || exit 1", ["||"]),
        ("sh -c 'make || true'", ["||"]),
        ("echo $(test -e a || echo b)", ["||"]),
        ("echo case else", []),
        ("grep -E 'a||b' a.txt", []),
        ("python3 - <<'EOF'\nif a: b\nEOF", []),
        ("make && make check # || true", []),
    ],
)
def test_a_command_with_alternatives_is_refused_in_strict_mode_only(command: str, branches: list[str]) -> None:
    """R-LOCK-7."""
    findings = [f for f in findings_of(steps(step(command=command)), mode=STRICT) if f.code == "step.branch"]
    assert [f.severity for f in findings] == [ERROR] * len(branches)
    assert [f.found.partition(" ")[0] for f in findings] == branches
    assert codes(steps(step(command=command))) == set()


def test_each_step_must_use_a_tool_that_the_policy_allows() -> None:
    """R-LOCK-5."""
    policy = Policy(frozenset({"write_file"}), (("etc/tools.yaml", "0" * 64),))
    one = plan(task(steps=(step("write_file", path="a.txt", content=""), step(command="true"))))
    (finding,) = findings_of(one, policy=policy)
    assert (finding.code, finding.severity, finding.found, finding.line) == ("step.tool-not-allowed", ERROR, "run", 20)
    assert "etc/tools.yaml" in finding.message
    nothing = findings_of(one, policy=dataclasses.replace(policy, tools=frozenset()))
    assert [f.accepted for f in nothing] == ["no tool"] * 2


# Scope


def test_a_step_must_stay_within_its_task_s_declaration() -> None:
    """R-LOCK-6."""
    declared = (FileClaim("create", "src/**"), FileClaim("move", "a", "b"))
    own_steps = (
        step("write_file", path="src/x/y.py", content=""),
        step("move_file", **{"from": "a", "to": "b"}),
        step("make_directory", path="anywhere"),
        step(command="touch z"),
    )
    assert codes(plan(task(files=declared, steps=own_steps))) == set()
    (finding,) = findings_of(plan(task(files=declared, steps=(step("delete_file", path="c"),))))
    assert (finding.code, finding.found, finding.severity) == ("step.undeclared-path", "c", "warning")


PATCH = "--- a/one.txt\n+++ b/two.txt\n@@ -1 +1 @@\n-a\n+b\n"


def test_the_paths_of_a_patch_count_as_paths_of_the_step() -> None:
    """R-LOCK-5."""
    inside = (FileClaim("modify", "one.txt"), FileClaim("modify", "two.txt"))
    assert codes(plan(task(files=inside, steps=(step("apply_patch", patch=PATCH),)))) == set()
    assert codes(plan(task(steps=(step("apply_patch", patch=PATCH),)))) == {"step.undeclared-path"}
    escaping = step("apply_patch", patch=PATCH.replace("one.txt", "../one.txt"))
    assert "path.outside-workspace" in codes(plan(task(files=inside, steps=(escaping,))))


@pytest.mark.parametrize(
    ("path", "protected", "code"),
    [
        ("sub/.git/config", (), "path.protected"),
        (".github/workflows/x.yml", (), None),  # a task may declare it by name
        (".GIT/config", (), "path.protected"),
        ("lock.toml", ("*.toml",), "path.protected"),
        ("deep/lock.toml", ("*.toml",), None),
        ("Migrations/1.sql", ("migrations/**",), "path.protected"),
        ("schlüssel/a", ("SCHLÜSSEL",), "path.protected"),
        ("ordinary/a", ("SCHLÜSSEL",), None),
    ],
)
def test_the_fast_path_check_misses_no_rule(path: str, protected: tuple[str, ...], code: str | None) -> None:
    """R-LOCK-5."""
    candidate = plan(task(files=(FileClaim("create", path),)), scope=Scope(None, protected))
    assert codes(candidate) == ({code} if code else set())


def test_the_scope_of_a_step_must_be_inside_the_workspace_too() -> None:
    """R-LOCK-5."""
    outside = dataclasses.replace(step(command="true"), scope=("../**",))
    assert codes(steps(outside)) == {"path.outside-workspace"}


@pytest.mark.parametrize(("root", "code"), [("/srv", "plan.bad-scope"), ("../x", "plan.bad-scope"), (".", None)])
def test_the_root_of_a_plan_must_be_a_folder_of_the_repository(root: str, code: str | None) -> None:
    """R-LOCK-5."""
    codes_of_plan = codes(plan(scope=Scope(root)))
    assert (code in codes_of_plan) if code else codes_of_plan == set()


# Coverage


def test_requirements_and_tasks_are_matched_across_all_plans_of_the_phase() -> None:
    """R-LOCK-6, R-GATE-2."""
    one = plan(task(requirements=("REQ-1",)), requirements={"REQ-1": "a", "REQ-2": "b"})
    two = plan(task("T1-02", requirements=("REQ-2",)), requirements={"REQ-2": ""}, path="02-PLAN.md", plan="02")
    assert codes(one, two) == set()
    assert [(f.code, f.found) for f in findings_of(one)] == [("requirement.no-task", "REQ-2: b")]
    assert codes(plan(task(), requirements={"REQ-1": "a"})) == {"requirement.no-task", "task.no-requirement"}
    assert codes(plan(task())) == set()


def test_a_criterion_that_only_a_model_judges_needs_an_artifact() -> None:
    """R-LOCK-6."""
    opinion = (Criterion("AC-1", "it reads well", "opinion"),)
    bare = task(acceptance=opinion, validator="critic", files=None)
    assert codes(plan(bare)) == {"task.no-artifact"}
    assert codes(plan(dataclasses.replace(bare, files=(FileClaim("create", "a"),)))) == set()
    assert codes(plan(dataclasses.replace(bare, verify=("true",)))) == set()
    assert codes(plan(dataclasses.replace(bare, files=(FileClaim("read", "a"),)))) == {"task.no-artifact"}
    by_person = (Criterion("AC-1", "it reads well", "human"),)
    assert codes(plan(task(acceptance=by_person, files=None))) == set()


def test_strict_mode_requires_non_goals_change_classes_invariants_and_complete_interfaces() -> None:
    """R-LOCK-6, R-GATE-2."""
    half = Interface("greet", {"inputs": "a name"})
    bare = plan(task(interfaces=(half,)))
    expected = {*ABSENT, "plan.no-invariants", "task.no-change-class", "interface.incomplete"}
    assert codes(bare) == set()
    assert codes(bare, mode=STRICT) == expected
    whole = Interface("greet", dict.fromkeys(("inputs", "outputs", "errors", "side effects"), "none"))
    complete = plan(
        task(interfaces=(whole,), change="extending"),
        invariants=(Invariant("INV-1", "it imports", "true"),),
        success_criteria=CHECKED,
        spans={"requirements": HERE, "non_goals": HERE, "invariants": HERE},
    )
    assert codes(complete, mode=STRICT) == set()


def test_a_plan_without_change_classes_gets_one_finding() -> None:
    """R-LOCK-6."""
    silent = [task(f"T1-0{n}", span=Span(0, 1, n)) for n in range(1, 5)]

    def unclassified(*tasks: Task) -> list[tuple[int, str]]:
        return [(f.line, f.found) for f in findings_of(plan(*tasks), mode=STRICT) if f.code == "task.no-change-class"]

    assert unclassified(*silent) == [(1, "T1-01, T1-02, T1-03, T1-04")]
    assert [line for line, _ in unclassified(dataclasses.replace(silent[0], change="extending"), *silent[1:])] == [
        2,
        3,
        4,
    ]


def test_each_unproven_criterion_is_reported_at_its_line_by_the_selected_mode() -> None:
    """R-LOCK-1, R-LOCK-6."""
    loose = tuple(Criterion(f"AC-{n}", f"it is {n}", "unproven", span=Span(0, 1, 20 + n)) for n in (2, 3))
    one = plan(task(acceptance=(*CHECKED, *loose)), success_criteria=(loose[0],))
    for mode, severity in ((None, "warning"), (STRICT, ERROR)):
        unproven = [f for f in findings_of(one, mode=mode) if f.code == "criterion.unproven"]
        assert [(f.line, f.found, f.severity) for f in unproven] == [
            (22, "it is 2", severity),
            (23, "it is 3", severity),
            (22, "it is 2", severity),
        ]


def test_a_task_with_a_verify_that_proves_nothing_gets_a_suggestion() -> None:
    """R-LOCK-1."""
    mixed = (Criterion("AC-1", "reads well", "opinion"), Criterion("AC-2", "it counts", "unproven"))
    for one in (task(acceptance=mixed, verify=("true",)), task(acceptance=(*CHECKED, *mixed), verify=("true",))):
        assert [f.mend for f in findings_of(plan(one)) if "— verify" in f.mend]
    assert not [f for f in findings_of(plan(task(acceptance=(*CHECKED, *mixed)))) if "— verify" in f.mend]


def test_a_file_of_plain_steps_has_no_place_for_declarations() -> None:
    """R-LOCK-6."""
    bare = plan(task(steps=(step(command="true"),)), path="greet.yaml", mode=STRICT)
    assert codes(bare) == set()


def test_a_plain_step_s_intent_is_judged_once_though_it_is_the_title_too() -> None:
    """R-LOCK-7."""
    vague = "clear the caches as needed"
    bare = plan(task(title=vague, steps=(step(intent=vague, command="true"),)), path="greet.yaml", mode=STRICT)
    assert [(f.code, f.line) for f in findings_of(bare)] == [("text.conditional", 20)]


def test_no_mode_option_makes_a_strict_plan_guided() -> None:
    """R-LOCK-6."""
    strict = plan(mode=STRICT)
    assert codes(strict, mode="guided") == codes(strict) == {*ABSENT, "task.no-change-class"}


def test_an_irreversible_task_is_reported_in_both_modes() -> None:
    """R-LOCK-9."""
    irreversible = plan(task(rollback=RollbackClass("irreversible", (), "it mails")))
    for mode in (None, STRICT):
        assert [f.severity for f in findings_of(irreversible, mode=mode) if f.code == "task.irreversible"] == [
            "warning"
        ]


# Modes and questions


def test_one_strict_plan_makes_the_whole_phase_strict() -> None:
    """R-LOCK-6."""
    guided = plan(task(title="Fix it as needed"))
    strict = plan(task("T1-02", change="extending"), path="02-PLAN.md", plan="02", mode=STRICT)
    assert {f.code: f.severity for f in findings_of(guided, strict)}["text.conditional"] == ERROR


def answered(*plans: Plan, mode: str | None = None) -> dict[str, self_check.Answer]:
    assembled, _ = contract.assemble("1", "folder", plans, SETTINGS)
    assert assembled is not None
    case = registry.case(assembled, SETTINGS, mode=mode)
    return {a.id: a for a in self_check.answers(case, registry.findings(case))}


def test_every_negative_self_check_answer_is_an_error_in_strict_mode() -> None:
    """R-LOCK-6."""
    strict = {rule.code: rule.strict for rule in registry.RULES}
    for question in self_check.QUESTIONS:
        assert {strict[code] for code in question.codes} <= {ERROR}


def test_ten_questions_are_answered_with_evidence() -> None:
    """R-LOCK-6."""
    rollback = RollbackClass("compensatable", ("true",))
    candidate = plan(
        task(requirements=("REQ-1",), change="breaking", rollback=rollback, limits=Limits(1)),
        requirements={"REQ-1": "a"},
        spans={"non_goals": HERE},
    )
    answers = answered(candidate)
    assert len(answers) == 10
    assert answers["requirements"] == self_check.Answer(
        "requirements", answers["requirements"].question, "yes", ("REQ-1",)
    )
    assert answers["rollback"].evidence == ("T1-01 by its own commands", "every other task by snapshot")
    assert answers["change-classes"].evidence == ("T1-01 breaking",)
    assert answers["non-goals"].evidence == ("declared: none",)
    assert answers["agents"].evidence == ("agent",)
    assert answers["design"].answer == "not judged"


def test_a_negative_answer_names_its_cause_even_without_a_finding() -> None:
    """R-LOCK-6."""
    answers = answered(plan(*(task(f"T1-{n:02}", files=(FileClaim("create", f"{n}.txt"),)) for n in range(1, 31))))
    assert answers["change-classes"].answer == "no"
    assert answers["change-classes"].evidence[0] == "01-PLAN.md:9 task.no-change-class"
    assert {rule.guided for rule in registry.RULES if rule.code == "task.no-change-class"} == {SILENT}


# Links


@pytest.mark.parametrize(
    ("path", "leads_to", "code"),
    [
        ("out/a.txt", "/srv/data", "path.outside-workspace"),
        ("out/**", "/srv/data", "path.outside-workspace"),
        ("out/", "/srv/data", "path.outside-workspace"),
        ("out/hooks", ".git", "path.protected"),
        ("out/config.yaml", ".idumb", "path.protected"),
        ("out/a.txt", "elsewhere", None),
        ("out/a.txt", "", None),
        ("outside/a.txt", "/srv/data", None),
    ],
)
def test_a_path_is_judged_by_the_target_of_its_links(path: str, leads_to: str, code: str | None) -> None:
    """R-LOCK-5."""
    assembled, _ = contract.assemble("1", "folder", [plan(task(files=(FileClaim("create", path),)))], SETTINGS)
    assert assembled is not None
    findings = registry.findings(registry.case(assembled, SETTINGS, links={"out": leads_to}))
    assert {f.code for f in findings} == ({code} if code else set())


def test_the_folders_of_all_paths_are_checked_for_links() -> None:
    """R-LOCK-5."""
    files = (FileClaim("create", "a/b/c.txt"), FileClaim("modify", "d/*/e.txt"), FileClaim("delete", "f/"))
    assembled, _ = contract.assemble(
        "1",
        "folder",
        [plan(task(files=files, steps=(step("write_file", path="g/h", content=""), step("delete_file", path="../i"))))],
        SETTINGS,
    )
    assert assembled is not None
    assert scope.folders(assembled) == {"a/b", "d", "f", "g"}
