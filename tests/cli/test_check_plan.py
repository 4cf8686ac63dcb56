"""`idumb check-plan` as a user meets it: findings by mode, policies, hashes, the self-check."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from tests.support import project as projects
from tests.support.project import Project

WHOLE = """mode: strict
requirements: {REQ-1: A greeting is there}
non_goals: [{id: NG-1, text: No second greeting}]
success_criteria: [{text: The greeting is there, check: test -s a.txt}]
"""
FIELDS = "- **Requirements:** REQ-1\n- **Change:** extending\n"


def codes(project: Project, *flags: str) -> dict[str, str]:
    """Code to severity."""
    data = project.quick("check-plan", "1", *flags, "--json").data
    return {str(f["code"]): str(f["severity"]) for f in data["findings"]}


def answers(project: Project, *flags: str) -> dict[str, str]:
    data = project.quick("check-plan", "1", *flags, "--json").data
    return {str(one["id"]): str(one["answer"]) for one in data["self_check"]}


def write_policy(project: Project, text: str) -> Path:
    place = project.folder / ".idumb/policy/tools.yaml"
    place.parent.mkdir()
    place.write_text(text, encoding="utf-8")
    return place


def test_a_complete_strict_plan_has_no_finding_and_no_question_answered_no(project: Project) -> None:
    """R-LOCK-1, R-LOCK-6."""
    project.plan([projects.making("T1-01", "a.txt", fields=FIELDS)], head=WHOLE)
    assert codes(project) == {}
    assert answers(project) == {
        "executable": "yes",
        "requirements": "yes",
        "scope": "yes",
        "rollback": "yes",
        "interfaces": "not judged",
        "non-goals": "yes",
        "invariants": "not judged",
        "change-classes": "yes",
        "agents": "yes",
        "design": "not judged",
    }


LACKING = {
    "requirements": ("requirements: {REQ-1: A greeting is there", "requirements: {REQ-2: Two, REQ-1: One"),
    "non-goals": ("non_goals: [{id: NG-1, text: No second greeting}]\n", ""),
    "change-classes": ("- **Change:** extending\n", ""),
    "scope": ('"path": "a.txt"', '"path": "b.txt"'),
    "executable": ("it holds", "it holds as appropriate"),
    "interfaces": ("- **Files:**", "- **Interfaces:**\n  - `greet`\n    - inputs: none\n- **Files:**"),
}


def test_each_question_answered_no_refuses_a_strict_plan(project: Project) -> None:
    """R-LOCK-6."""
    place = project.plan([projects.making("T1-01", "a.txt", fields=FIELDS)], head=WHOLE)
    text = place.read_text(encoding="utf-8")
    for good, bad in LACKING.values():
        assert good in text
        text = text.replace(good, bad)
    place.write_text(text, encoding="utf-8")
    answer = project.quick("check-plan", "1", "--json")
    assert answer.code == 3
    judged = {one["id"]: one["evidence"] for one in answer.data["self_check"] if one["answer"] == "no"}
    assert judged.keys() == {*LACKING, "invariants"}, "an interface needs one"
    assert all(judged.values())
    refused = project.quick("execute-phase", "1", "--json")
    assert (refused.code, refused.error["code"]) == (3, "plan.invalid")


def test_a_guided_plan_gets_fewer_findings_and_is_refused_for_none_of_them(project: Project) -> None:
    """R-LOCK-6."""
    project.plan([projects.making("T1-01", "a.txt")], head="requirements: {REQ-1: A greeting is there}\n")
    assert codes(project) == {"requirement.no-task": "warning", "task.no-requirement": "warning"}
    assert answers(project)["non-goals"] == "no"
    assert codes(project, "--mode", "strict") == {
        "requirement.no-task": "error",
        "task.no-requirement": "error",
        "plan.no-success-criteria": "error",
        "plan.no-non-goals": "error",
        "task.no-change-class": "error",
    }


def test_ambiguous_words_are_a_warning_in_guided_and_an_error_in_strict_mode(project: Project) -> None:
    """R-LOCK-7: `tests/format/cases/wording` has the words."""
    criterion = "It greets friends etc."
    boxes = f'  - [ ] {criterion} — check: `make test`\n  - [ ] `{criterion}` and "{criterion}" — check: `make all`\n'
    project.plan([projects.making("T1-01", "a.txt", criteria=boxes)])
    answer = project.quick("check-plan", "1", "--json")
    # Not the one in backticks and quotes.
    assert [(f["code"], f["severity"], f["line"]) for f in answer.data["findings"]] == [("text.vague", "warning", 18)]
    assert answer.code == 0
    assert codes(project, "--mode", "strict")["text.vague"] == "error"


def test_a_tool_that_the_policy_does_not_allow_is_refused_in_both_modes(project: Project) -> None:
    """R-LOCK-5."""
    steps = (projects.write("a.txt", "x"), projects.shell("true"))
    project.plan([projects.making("T1-01", "a.txt", steps=steps)])
    before = project.quick("check-plan", "1", "--json").data
    write_policy(project, "allow: [write_file]\n")
    answer = project.quick("check-plan", "1", "--json")
    assert answer.code == 3
    (finding,) = answer.data["findings"]
    assert (finding["code"], finding["found"], finding["accepted"]) == ("step.tool-not-allowed", "run", "write_file")
    assert ".idumb/policy/tools.yaml" in finding["message"]
    refused = project.quick("execute-phase", "1", "--approve", before["consent_hash"], "--json")
    assert refused.error["code"] == "plan.invalid"
    assert not project.exists("a.txt")


def test_a_system_wide_policy_restricts_the_repository_s_policy(project: Project, tmp_path: Path) -> None:
    """R-LOCK-5."""
    project.plan([projects.making("T1-01", "a.txt")])
    write_policy(project, "allow: [write_file]\n")
    system = tmp_path / "tools.yaml"
    system.write_text("deny: [write_file]\n", encoding="utf-8")
    narrowed = project.idumb("check-plan", "1", environment={"IDUMB_TOOL_POLICY": str(system)})
    assert narrowed.code == 3
    assert "step.tool-not-allowed" in narrowed.out
    missing = project.idumb("check-plan", "1", "--json", environment={"IDUMB_TOOL_POLICY": str(tmp_path / "no.yaml")})
    assert (missing.code, missing.error["code"]) == (3, "policy.unreadable")


def test_a_broken_policy_is_reported_with_its_line(project: Project) -> None:
    """R-LOCK-5."""
    project.plan([projects.making("T1-01", "a.txt")])
    write_policy(project, "allow: [write_file]\nalow: [run]\n")
    answer = project.quick("check-plan", "1", "--json")
    assert (answer.code, answer.error["code"]) == (3, "policy.invalid")
    assert ".idumb/policy/tools.yaml:2" in answer.error["message"]


def test_the_hashes_of_plan_and_phase_are_those_of_sha256sum(project: Project) -> None:
    """R-LOCK-2."""
    places = [
        project.plan([projects.making("T1-01", "a.txt")], commit=False),
        project.plan([projects.making("T1-02", "b.txt")], name="02", commit=False),
    ]
    data = project.quick("check-plan", "1", "--json").data
    assert list(data["plan_hashes"].values()) == [hashlib.sha256(p.read_bytes()).hexdigest() for p in places]
    summed = subprocess.run(
        "sha256sum .planning/phases/1/*PLAN.md | sha256sum",
        shell=True, cwd=project.folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert summed.stdout.split()[0] == data["phase_hash"]
    places[0].write_bytes(places[0].read_bytes() + b"\n")
    assert project.quick("check-plan", "1", "--json").data["phase_hash"] != data["phase_hash"]


def test_an_expected_hash_is_enforced(project: Project) -> None:
    """R-LOCK-2: of the phase, of the contract and of a plan, also of one with errors."""
    place = project.plan([projects.making("T1-01", "a.txt")], commit=False)
    data = project.quick("check-plan", "1", "--json").data
    expected = (data["phase_hash"], data["contract_hash"], *data["plan_hashes"].values())
    assert [project.quick("check-plan", "1", "--hash", one).code for one in expected] == [0, 0, 0]
    for more in (b"\n", b"### T1-09 Without a colon\n"):
        place.write_bytes(place.read_bytes() + more)
        for one in expected:
            refused = project.quick("check-plan", "1", "--hash", one, "--json")
            assert (refused.code, refused.error["code"]) == (4, "plan.other-hash")
            assert refused.error["details"]["found"]["phase"]


def test_a_clean_plan_prints_only_verdict_contract_hash_and_next_command(project: Project) -> None:
    """R-LOCK-1, R-LOCK-6: the questions of the self-check are answered with `--verbose`."""
    project.plan([projects.making("T1-01", "a.txt")])
    data = project.quick("check-plan", "1", "--json").data
    assert project.quick("check-plan", "1").out.splitlines() == [
        "Phase 1: 1 task in 1 plan, mode guided, no errors.",
        f"  contract {data['contract_hash']}",
        "Next: idumb execute-phase 1 (it shows what will run, and asks)",
    ]
    shown = project.quick("check-plan", "1", "--verbose").out
    (sum_of_plan,) = data["plan_hashes"].values()
    for words in (
        sum_of_plan,
        data["phase_hash"],
        data["next_free_id"],
        f"--approve {data['consent_hash']}",
        "self-check: 4 yes, 2 no, 4 not judged",
        "no: Does the plan declare its non-goals?",
        "not judged, design: Is the quality of the design acceptable?",
    ):
        assert words in shown


def test_a_listed_requirement_must_be_in_the_requirements_file(project: Project) -> None:
    """R-LOCK-6."""
    project.plan(
        [projects.making("T1-01", "a.txt", fields="- **Requirements:** REQ-1\n")], head="requirements: [REQ-1]\n"
    )
    assert codes(project) == {"requirement.unlisted": "warning"}
    (project.folder / ".planning/REQUIREMENTS.md").write_text("- REQ-10: no\n", encoding="utf-8")
    assert codes(project) == {"requirement.unlisted": "warning"}
    (project.folder / ".planning/REQUIREMENTS.md").write_text("- **REQ-1**: yes\n", encoding="utf-8")
    assert codes(project) == {}


def test_an_unproven_criterion_is_reported_once_with_the_requested_mode(project: Project) -> None:
    """R-LOCK-1, R-RUN-3."""
    boxes = "  - [ ] It is there — check: `make test`\n  - [ ] It is friendly\n"
    project.plan([projects.making("T1-01", "a.txt", criteria=boxes)])
    for mode, severity in (("guided", "warning"), ("strict", "error")):
        answer = project.quick("check-plan", "1", "--mode", mode, "--json").data
        unproven = [(f["line"], f["severity"]) for f in answer["findings"] if f["code"] == "criterion.unproven"]
        assert (answer["mode"], unproven) == (mode, [(19, severity)])
        assert f"mode {mode}, " in project.quick("check-plan", "1", "--mode", mode).out


def test_a_path_behind_a_link_is_named_with_its_target_and_refused_if_it_leads_out(
    project: Project, tmp_path: Path
) -> None:
    """R-LOCK-5: links are resolved before a path is judged. A link itself may be replaced, but not in strict mode."""
    outside = str(tmp_path / "away")
    project.repo.write("src/a.py", "a = 1\n")
    for link, target in (("lib", "src"), ("a.txt", "src/a.py"), ("out", outside), ("out.txt", f"{outside}/x")):
        (project.folder / link).symlink_to(target)
    linked = {
        "lib/a.py": ("path.through-link", "is behind a link, at src/a.py"),
        "a.txt": ("path.through-link", "is a link to src/a.py"),
        "out.txt": ("path.leaves-workspace", f"is a link to {outside}/x"),
        "out/a.txt": ("path.outside-workspace", outside),
    }
    project.plan([projects.task(f"T1-0{n}", files=f"create `{path}`") for n, path in enumerate(linked, 1)])
    answer = project.quick("check-plan", "1", "--json")
    assert answer.code == 3
    for mode in ("guided", "strict"):
        rows = project.quick("check-plan", "1", "--mode", mode, "--json").data["findings"]
        rows = [row for row in rows if row["code"] in {code for code, _ in linked.values()}]
        assert {row["found"]: row["code"] for row in rows} == {path: code for path, (code, _) in linked.items()}
        assert all(linked[row["found"]][1] in row["message"] for row in rows), rows
        errors = {row["found"] for row in rows if row["severity"] == "error"}
        assert errors == ({"out/a.txt"} if mode == "guided" else {"out/a.txt", "out.txt"})
    refused = project.quick("execute-phase", "1", "--approve", answer.data["consent_hash"], "--json")
    assert refused.error["code"] == "plan.invalid"


def test_errors_of_format_and_graph_and_gaps_of_a_strict_plan_are_reported_at_once(project: Project) -> None:
    """R-PLAN-5, R-PLAN-6, R-LOCK-1. An id in an unreadable line is not called unknown."""
    tasks = [
        projects.making("T1-01", "a.txt", after="T1-02"),
        projects.making("T1-02", "b.txt", after="T1-01, T1-09"),
        projects.making("T1-03", "c.txt", after="T1-04"),
        projects.making("T1-04", "d.txt", after="T1-03"),
        projects.making("T1-05", "e.txt", after="T1-01"),
        projects.making(
            "T1-06",
            "f.txt",
            after="T1-07",
            criteria="  - [ ] It says TBD — check: `make test`\n  - [ ] It is friendly\n",
        ),
        "### T1-07 Without a colon\n\n- **Acceptance:**\n  - [ ] Done — human\n",
        "- [ ] without an id\n",
    ]
    project.plan(tasks, head="mode: strict\n")
    answer = project.quick("check-plan", "1", "--json")
    wrong = {(f["code"], f["found"]) for f in answer.data["findings"] if f["severity"] == "error"}
    gaps = {"plan.no-requirements", "plan.no-success-criteria", "plan.no-non-goals", "task.no-change-class",
            "criterion.unproven", "text.placeholder"}  # fmt: skip
    assert (answer.code, {code for code, _ in wrong} & gaps) == (3, gaps)
    assert {(code, found) for code, found in wrong if code not in gaps} == {
        ("plan.cycle", "T1-01 → T1-02 → T1-01"),
        ("plan.cycle", "T1-03 → T1-04 → T1-03"),
        ("task.box-without-id", "[ ] without an id"),
        ("task.no-colon", "T1-07 Without a colon"),
        ("task.unknown-dependency", "T1-09"),
        ("task.unreachable", "T1-01"),
    }
    text = project.quick("check-plan", "1").out
    assert "write - [ ] T1-10 and the title" in text
    assert "T1-05 can never start: it depends on T1-01" in text


def test_a_file_of_another_tool_is_recognized_as_a_plan_and_as_a_path(project: Project) -> None:
    """R-PLAN-5."""
    tasks = "# Tasks: A\n\n## Phase 1: Setup\n\n- [ ] T001 [P] Make src/a.py\n"
    for path in ("specs/001-a/tasks.md", ".planning/phases/1/01-PLAN.md"):
        place = project.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(tasks, encoding="utf-8")
    findings = project.quick("check-plan", "1", "--json").data["findings"]
    assert [(f["code"], f["line"]) for f in findings] == [("plan.foreign-format", 1)]
    answer = project.quick("check-plan", "specs/001-a/tasks.md", "--json")
    assert (answer.code, answer.error["code"]) == (3, "plan.invalid")
    assert answer.data["read"] == [
        {"path": "specs/001-a/tasks.md", "dialect": "spec-kit", "tasks": [], "depends_on": {}}
    ]
    refused = project.quick("execute-phase", "specs/001-a/tasks.md", "--json")
    assert (refused.code, refused.error["code"]) == (3, "phase.bad-name")
    assert "in the format of spec-kit" in refused.error["message"]


def test_the_version_of_a_plan_is_shown(project: Project) -> None:
    """R-PLAN-4."""
    project.plan([projects.making("T1-01", "a.txt")], head="version: 1.10\n")
    data = project.quick("check-plan", "1", "--json").data
    assert data["plan_versions"] == {".planning/phases/1/01-PLAN.md": "1.10"}
    assert "(version 1.10)" in project.quick("check-plan", "1", "--verbose").out
    project.plan([projects.making("T1-01", "a.txt")], head="version: the second\n")
    assert codes(project) == {"plan.bad-value": "error"}


def test_a_note_beside_a_plan_is_named_and_refuses_nothing(project: Project) -> None:
    """R-PLAN-1: a text without frontmatter is a plan only if something in it could be one of its tasks."""
    place = project.plan([projects.making("T1-01", "a.txt")]).with_name("NOTES-PLAN.md")
    place.write_text("# Plan: what we thought of 2024-05-01\n\n- [ ] ask Kim\n\n- 3-4 tasks\n", encoding="utf-8")
    assert codes(project) == {"plan.note": "warning"}
    assert project.execute("--no-verify").code == 0
    assert "what we thought of" in place.read_text(encoding="utf-8")
    for text in (
        "## Tasks\n",
        "### T1-02: B\n",
        "type: plan\ntitle: B\n",
        "- id: T1-02\n",
        "```yaml task\n```\n",
        "\n",
    ):
        place.write_text(text, encoding="utf-8")
        assert codes(project)["plan.no-frontmatter"] == "error", text
    place.write_text("### T1-02: B\n", encoding="utf-16")
    assert codes(project) == {"plan.not-utf-8": "error"}


def test_plans_of_other_names_and_plans_that_gsd_calls_done_are_named(project: Project) -> None:
    """R-PLAN-1: nothing that looks like a plan is passed over in silence. What GSD calls done runs all the same."""
    whole = project.plan([projects.making("T1-01", "a.txt")])
    text, folder = whole.read_text(encoding="utf-8"), whole.parent
    (folder / "plans").mkdir()
    for name in ("02-plan.md", "1-PLAN-03-page.md", "plans/PLAN-04.md", "05-PLAN-OUTLINE.md", "planning.md"):
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "old-plan.md").write_text("# What we thought\n", encoding="utf-8")
    found = project.quick("check-plan", "1", "--json").data["findings"]
    names = [str(each["path"]).partition("/1/")[2] for each in found if each["code"] == "plan.misnamed"]
    assert names == ["02-plan.md", "1-PLAN-03-page.md", "plans/PLAN-04.md"]
    for name in names:
        (folder / name).unlink()
    (folder / "01-SUMMARY.md").write_text("---\nstatus: halted\n---\n", encoding="utf-8")
    assert codes(project) == {}
    (folder / "01-SUMMARY.md").write_text("---\nstatus: complete\n---\n", encoding="utf-8")
    assert codes(project) == {"dialect.done": "warning"}
    whole.unlink()
    (folder / "02-plan.md").write_text(text, encoding="utf-8")
    refused = project.quick("check-plan", "1", "--json").error
    assert (refused["code"], "02-plan.md looks like a plan" in refused["message"]) == ("phase.no-plan", True)
