"""Approvals: what a person sees and answers before one, and that exactly what was approved runs, also later.

One changed byte voids the approval, and the message says where.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.cli.test_repository_states import at_terminal
from tests.support import approvals, seed
from tests.support import project as projects
from tests.support.approvals import CHECK, STRICT, approve, contract, may_start, refused, run, strict_task
from tests.support.gitrepo import GitSandbox
from tests.support.prepared import Prepared, prepared_project
from tests.support.project import Project, making, shell, task, write

BACK = "tests/back.sh"
MODES = pytest.mark.parametrize("mode", seed.one_on_a_push(["guided", "strict"], "the mode of an approval"))
EDITED = "echo edited >> ran.log\n"


def _create(sandbox: GitSandbox) -> Project:
    files = {"README.md": "# A project\n", ".gitignore": "*.log\n", CHECK: "test -s a.txt\n", BACK: "echo back\n"}
    return projects.create(sandbox, files=files)


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    return _create(sandbox)


def _plan(project: Project, mode: str) -> None:
    """A plan whose success criterion runs a script, with one task that a script rolls back."""
    head = f"success_criteria: [{{text: it is there, check: sh {CHECK}}}]\n"
    if mode == "strict":
        head = STRICT.replace("test -s a.txt", f"sh {CHECK}")
    head += "invariants: [{id: INV-1, text: it stays, check: test -e README.md}]\n"
    fields = "- **Requirements:** REQ-1\n- **Change:** extending\n" if mode == "strict" else ""
    fields += f"- **Rollback:** compensatable\n  - `sh {BACK}`\n"
    steps = (write("a.txt", "made\n"), shell("echo did >> outside.log"))
    project.plan([task("T1-01", files="create `a.txt`", check="test -s a.txt", steps=steps, fields=fields)], head=head)


def _ran(sandbox: GitSandbox, mode: str) -> Project:
    """The phase ran under an approval, is not verified yet, and its commands' files are as approved."""
    project = _create(sandbox)
    _plan(project, mode)
    approve(project, "--expires", "90m")
    assert run(project, "--no-verify").code == 0
    return project


_ran_guided, _ran_strict = (partial(_ran, mode=mode) for mode in ("guided", "strict"))


@pytest.fixture
def ran(prepared: Prepared, mode: str) -> Project:
    return prepared.get(_ran_strict if mode == "strict" else _ran_guided)


@MODES
def test_verification_runs_nothing_under_a_void_approval(ran: Project, mode: str) -> None:
    """R-LOCK-4."""
    project = ran
    project.repo.write(CHECK, EDITED)
    answer = project.json("verify-work", "1")
    if mode == "strict":
        assert [c["id"] for c in refused(answer, "approval.void")["choices"]] == ["put-back", "approve", "no"]
    else:
        details = refused(answer, "consent.missing")
        assert (details["changed"], details["parts"][0]["keys"]) == (["files"], [CHECK])
        assert f"is void, because these changed: files ({CHECK})." in answer.error["message"]
    assert not project.exists("ran.log")
    assert not project.events("1", "--kind", "verification.recorded")


@MODES
def test_a_rollback_runs_no_command_under_a_void_approval(ran: Project, mode: str) -> None:
    """R-LOCK-4, R-GIT-4."""
    project = ran
    project.repo.write(BACK, EDITED)
    back = ("rollback", "1", "--to", "start", "--yes")
    answer = project.quick(*back, "--json")
    assert refused(answer, "approval.void" if mode == "strict" else "consent.missing")["changed"] == ["files"]
    assert f"files ({BACK})" in answer.error["message"]
    assert not project.exists("ran.log")
    assert project.exists("a.txt")
    past = project.quick(*back, "--past", "T1-01", "--json")
    assert (past.code, past.data["invariants"]) == (0, [])
    assert not project.exists("ran.log")
    assert not project.exists("a.txt")


@pytest.mark.nightly
def test_a_rollback_needs_the_approval_of_the_locked_plan_and_not_of_the_current_one(prepared: Prepared) -> None:
    """R-LOCK-4, R-GIT-4."""
    project = prepared.get(_ran_strict)
    place = project.folder / ".planning/phases/1/01-PLAN.md"
    place.write_text(place.read_text().replace("A plan of tests", "Another plan"))
    project.repo.commit("another plan")
    answer = project.quick("rollback", "1", "--to", "start", "--yes", "--json")
    assert answer.code == 0, answer
    assert answer.data["compensated"] == ["T1-01"]


# Taking a word back


strict = prepared_project(approvals.create)


def open_questions(project: Project) -> list[str]:
    return [one["id"] for one in project.quick("check-plan", "1", "--json").data["open_questions"]]


def test_a_strict_plan_needs_an_answer_to_each_unjudged_question(strict: Project) -> None:
    """R-LOCK-6, R-ASK-1."""
    questions = open_questions(strict)
    assert questions == ["interfaces", "invariants", "design"]
    given = ("approve", "1", "--hash", contract(strict))
    for some in ((), ("--answer", "design=yes")):
        details = refused(strict.quick(*given, *some, "--json"), "approval.unanswered")
        assert [one["id"] for one in details["questions"]] == [
            one for one in questions if not (some and one == "design")
        ]
    refused(run(strict), "approval.missing")
    command = shlex.split(details["choices"][0]["command"])[1:]
    answer = strict.quick(*command, "--json")
    assert answer.code == 0, answer
    assert [(one["question"], one["answer"]) for one in answer.data["answers"]] == [
        ("design", "yes"),
        ("interfaces", "yes"),
        ("invariants", "yes"),
    ]
    assert {one["by"] for one in answer.data["answers"]} == {answer.data["by"]}
    may_start(strict)


def test_answering_no_to_a_self_check_question_approves_nothing(strict: Project) -> None:
    """R-LOCK-6."""
    flags = ("--answer", "interfaces,invariants=yes", "--answer", "design=no", "--json")
    details = refused(strict.quick("approve", "1", "--hash", contract(strict), *flags), "approval.answered-no")
    assert details["evidence"] == ["design: Is the quality of the design acceptable? no"]
    refused(run(strict), "approval.missing")


def test_an_answer_to_a_question_that_is_not_open_is_bad_input(strict: Project) -> None:
    """R-LOCK-6."""
    given = ("approve", "1", "--hash", contract(strict), "--json", "--answer")
    answer = strict.quick(*given, "rollback=yes")
    assert (answer.code, answer.error["code"]) == (3, "approval.unknown-question")


def test_an_unstated_requirement_is_answered_by_its_id(strict: Project) -> None:
    """R-LOCK-6."""
    strict.plan([strict_task("T1-01", "a.txt")], head=STRICT.replace("{REQ-1: files}", "[REQ-1]"))
    assert open_questions(strict)[-1] == "REQ-1"
    assert "REQ-1" in [one["question"] for one in approve(strict).data["answers"]]


def test_at_a_terminal_the_question_shows_what_yes_means_and_records_who_answered(strict: Project) -> None:
    """R-LOCK-6."""
    ended, output = at_terminal(strict, ("approve", "1"), "yes")
    assert ended == 0, output
    assert "you answer yes to design: Is the quality of the design acceptable?" in output
    assert strict.json("approve", "1", "--revoke").data["revoked"] == 1


def test_the_question_for_consent_lists_what_is_not_judged(strict: Project) -> None:
    """R-LOCK-6."""
    strict.plan([making("T1-01", "a.txt", fields="- **Estimate:** 3h\n")])
    shown = refused(run(strict), "consent.missing")["evidence"]
    (unjudged,) = [line for line in shown if line.startswith("not judged by idumb: ")]
    assert "design" in unjudged
    assert unjudged.endswith(" (idumb check-plan 1 --verbose shows the questions)")
    assert [line for line in shown if line.startswith("warning ")] == [
        "warning .planning/phases/1/01-PLAN.md:19: T1-01 is large: an estimate of 3 hours."
    ]


PLAN = ".planning/phases/1/01-PLAN.md"
SECOND = ".planning/phases/1/02-PLAN.md"
CONFIGURATION = ".idumb/config.yaml"
POLICY = ".idumb/policy/tools.yaml"
FIELDS = "- **Requirements:** REQ-1\n- **Change:** extending\n"
HEAD = (
    "mode: strict\nrequirements: {REQ-1: files}\nnon_goals: [{id: N-1, text: nothing else}]\n"
    "scope: {root: ., protected: [docs/keep.md]}\nlimits: {files: 7}\n"
    "invariants: [{id: I-1, text: it stays, check: sh tools/stays.sh}]\n"
    "success_criteria: [{text: it is there, check: make there}]\n"
)
SECOND_HEAD = (
    'depends_on: ["01"]\nmode: strict\nrequirements: {REQ-1: files}\nnon_goals: []\n'
    "success_criteria: [{text: built, check: test -s built.txt}]\n"
)
FILES = {
    "README.md": "# A bound\n",
    ".gitignore": "*.log\n",
    "tools/build.sh": "echo built > built.txt # by the agent\n",
    "tools/check.sh": "# is it there\ntest -s a.txt\n",
    "tools/stays.sh": "exit 0 # always\n",
    "tests/test_a.py": (
        '"""A test."""\nimport unittest  # one case\n\n\nclass Built(unittest.TestCase):\n'
        "    def test_it(self):\n        self.assertTrue(open('built.txt').read())\n"
    ),
    "Makefile": "there:\n\ttest -s a.txt\n",
}
SETTINGS = """\
# how this bound runs
bindings:
  maker: {adapter: command, argv: [sh, tools/build.sh, fast], timeout: 60}
protected: [vendor/keep.txt]
environment: [PATH, HOME, LANG]
limits: {open_files: 512}
run: {max_attempts: 2, check_timeout: 300, halt_after: 3}
"""
RULES = "# what steps may use\nallow: [write_file, run]\n"


@dataclass(frozen=True, slots=True)
class Flip:
    """Replace `old`, which occurs once in `path`, by `new`: one byte differs. `part` is the name in the message."""

    path: str
    old: str
    new: str
    part: str


FLIPS = (
    Flip(SECOND, "Task T1-02", "task T1-02", "plans"),
    # Commands, limits and protected paths stand in the plans; each is named as what it is, too.
    Flip(PLAN, "check.sh`", "check.sH`", "commands"),
    Flip(PLAN, "stays.sh}", "stays.sH}", "commands"),
    Flip(PLAN, "make there", "make There", "commands"),
    Flip(SECOND, "tests.test_a`", "tests.test_b`", "commands"),
    Flip(PLAN, "files: 7", "files: 8", "limits"),
    Flip(PLAN, "keep.md", "kelp.md", "protected"),
    # Files that commands and argument lists name (`_approve` has them all), and the policy, to their comments.
    Flip("tools/check.sh", "# is", "#\tis", "files"),
    Flip(POLICY, "what", "What", "policy"),
    # The configuration.
    Flip(CONFIGURATION, "LANG", "MANG", "configuration"),
    Flip(CONFIGURATION, "check_timeout: 300", "check_timeout: 400", "limits"),
    Flip(CONFIGURATION, "keep.txt", "keep.tXt", "protected"),
    # What agents start with.
    Flip(CONFIGURATION, "fast]", "last]", "agent maker"),
    Flip(CONFIGURATION, "build.sh", "build.sH", "agent maker"),
    Flip(CONFIGURATION, "[sh,", "[sb,", "agent maker"),
)


@pytest.fixture
def bound(sandbox: GitSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A strict phase of two plans that uses everything an approval is bound to. `sh` and `sb` are one program."""
    for name in ("sh", "sb"):
        sandbox.write(str(tmp_path / "bin" / name), '#!/bin/sh\nexec /bin/sh "$@"\n', mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    bound = projects.create(sandbox, files=FILES)
    first = task(
        "T1-01", files="create `a.txt`", check="sh tools/check.sh", steps=(write("a.txt", "made\n"),), fields=FIELDS
    )
    second = task(
        "T1-02",
        files="create `built.txt`",
        check="python3 -m unittest tests.test_a",
        fields=FIELDS + "- **Builder:** maker\n",
    )
    bound.plan([first], head=HEAD, commit=False)
    bound.plan([second], name="02", head=SECOND_HEAD, commit=False)
    bound.repo.write(POLICY, RULES)
    bound.configure(SETTINGS)
    return bound


def test_one_changed_byte_voids_the_approval_and_its_part_is_named(bound: Project) -> None:
    """R-LOCK-4, S2: nothing runs; after the byte is restored, the same approval is valid again."""
    scripts = {f"tools/{name}.sh" for name in ("build", "check", "stays")}
    assert set(approve(bound).data["bound"]["files"]["value"]) == {"Makefile", "tests/test_a.py", *scripts}
    for path in dict.fromkeys(flip.path for flip in FLIPS):
        text = bound.read(path)
        for flip in (one for one in FLIPS if one.path == path):
            assert text.count(flip.old) == 1, flip
            bound.repo.write(path, text.replace(flip.old, flip.new))
            answer = run(bound)
            assert flip.part in refused(answer, "approval.void")["changed"], (flip, answer)
            assert flip.part in answer.error["message"]
            assert not bound.exists("a.txt")
        bound.repo.write(path, text)
        assert bound.json("check-plan", "1").data["approval"]["standing"] == "live"
