"""Bad plans, configuration and usage on the command line: one clear line, an exit code, nothing changed."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making, shell, task
from tests.support.refusals import RUNNING, all_bytes, refused

PLAN = ".planning/phases/1/01-PLAN.md"


def findings(error: Mapping[str, object]) -> list[Mapping[str, object]]:
    details = error["details"]
    assert isinstance(details, dict)
    return list(details["findings"])


BAD_PLANS: Mapping[str, tuple[str, str, str]] = {
    # a mistake of each kind (tests/format and tests/unit/domain have all): (plan, the line it is on, words)
    "an unknown key": (projects.plan_text([making("T1-01", "a")], head="golas: none\n"), "golas: none", "goal"),
    "a cycle": (
        projects.plan_text([making("T1-01", "a", after="T1-02"), making("T1-02", "b", after="T1-01")]),
        "- **Depends on:** T1-02",
        "T1-01 → T1-02 → T1-01",
    ),
    "a path into .git": (projects.plan_text([making("T1-01", ".git/config")]), ".git/config", "protected"),
}


@pytest.mark.parametrize("mistake", BAD_PLANS)
def test_a_bad_plan_is_refused_with_file_and_line_and_runs_nothing(project: Project, mistake: str) -> None:
    """R-PLAN-5, R-PLAN-6, R-LOCK-1, R-LOCK-5."""
    text, line_text, words = BAD_PLANS[mistake]
    project.repo.write(PLAN, text)
    before = all_bytes(project.repo)
    checked = project.quick("check-plan", "1", "--json")
    errors = [f for f in checked.data["findings"] if f["severity"] == "error"]
    assert (checked.code, checked.error["code"]) == (3, "plan.invalid")
    assert errors, checked.out
    assert all(f["path"] == PLAN and f["line"] >= 1 and f["message"] for f in errors)
    lines = [n for n, line in enumerate(text.splitlines(), 1) if line_text and line_text in line]
    assert not lines or set(lines) & {f["line"] for f in errors}, errors
    assert any(words in f["message"] + f["fix"] + f["accepted"] + f["found"] for f in errors), errors
    human = project.quick("check-plan", "1")
    assert human.code == 3
    assert f"{PLAN}:{errors[0]['line']}" in human.out
    assert all_bytes(project.repo) == before
    error, message = refused(project, "execute-phase", "1", exit=3, code="plan.invalid")
    assert {f["line"] for f in findings(error)} >= {f["line"] for f in errors}
    assert f"{PLAN}:{errors[0]['line']}" in message
    assert error["hint"] == "idumb check-plan 1"


def test_an_unknown_phase_is_reported_with_the_existing_ones(project: Project) -> None:
    """R-RUN-1."""
    project.plan([making("T1-01", "a.txt")])
    for command in ("execute-phase", "check-plan", "graph", "resume", "verify-work", "log"):
        error, _ = refused(project, command, "7", exit=3, code="phase.not-found")
        assert "7" in str(error["message"])


def test_a_path_where_no_file_is_is_no_phase(project: Project) -> None:
    """R-RUN-1: no plan is proposed in a folder that has the name of a file."""
    for path, code, words in (
        ("nope.md", "phase.not-found", "There is no file nope.md."),
        ("docs/nope.md", "phase.not-found", "There is no file docs/nope.md."),
        ("README.md", "phase.bad-name", "'README.md' is not a valid phase name"),
        (".planning", "phase.not-found", "There is no phase .planning"),
        (".planning/", "phase.bad-name", "'.planning/' is not a valid phase name"),
    ):
        error, _ = refused(project, "execute-phase", path, exit=3, code=code)
        assert str(error["message"]).startswith(words)


def test_for_a_phase_only_in_the_roadmap_the_plan_command_is_suggested(project: Project) -> None:
    """R-RUN-1."""
    assert project.quick("roadmap", "--add", "Second").code == 0
    for command in ("execute-phase", "check-plan"):
        error, _ = refused(project, command, "2", exit=3, code="phase.no-plan")
        details = error["details"]
        assert isinstance(details, dict)
        assert [choice["command"] for choice in details["choices"]] == ["idumb plan-phase 2 --template", None]
    assert project.quick("plan-phase", "2", "--template").code == 0
    assert project.quick("check-plan", "2").code == 0


def test_before_init_commands_that_write_suggest_idumb_init(sandbox: GitSandbox) -> None:
    """R-RUN-1: each entry check names the command that fixes the problem."""
    sandbox.commit_with({"README.md": "x\n", PLAN: projects.plan_text([making("T1-01", "a.txt")])}, "first")
    project = Project(sandbox, sandbox.root)
    for arguments in (*RUNNING, ("rollback", "1", "--to", "start"), ("accept", "T1-01", "--why", "x"), ("undo",)):
        error, _ = refused(project, *arguments, exit=4, code="state.not-initialised")
        assert error["hint"] == "idumb init"
    assert project.json("status").data["next"]["command"] == "idumb init"


def test_consent_to_another_contract_is_refused(project: Project) -> None:
    """R-LOCK-4, R-LOCK-2 in guided mode: only approved content runs, under the approved configuration."""
    place = project.plan([making("T1-01", "a.txt")])
    consent = project.approval()
    error, _ = refused(project, "execute-phase", "1", "--approve", "0" * 64, exit=4, code="consent.other-hash")
    assert error["hint"] == "idumb execute-phase 1"
    text = place.read_text()
    place.write_text(text.replace("made", "more"))
    refused(project, "execute-phase", "1", "--approve", consent, exit=4, code="consent.other-hash")
    place.write_text(text)
    project.configure("run: {max_attempts: 2}\n")
    refused(project, "execute-phase", "1", "--approve", consent, exit=4, code="consent.other-hash")
    assert not project.exists("a.txt")


def test_a_strict_plan_is_refused_with_any_option(project: Project) -> None:
    """R-LOCK-4: --approve does not replace `idumb approve`."""
    head = "mode: strict\nrequirements: {REQ-1: files}\nnon_goals: []\n"
    head += "success_criteria: [{text: it is there, check: test -s a.txt}]\n"
    project.plan([making("T1-01", "a.txt", fields="- **Requirements:** REQ-1\n- **Change:** extending\n")], head=head)
    consent = project.approval()
    for flags in ((), ("--mode", "guided"), ("--mode", "strict")):
        code = "mode.strict-plan" if "guided" in flags else "approval.missing"
        refused(project, "execute-phase", "1", "--approve", consent, *flags, exit=4, code=code)


USAGE: Mapping[str, tuple[str, ...]] = {
    "an unknown command": ("exekute-phase", "1"),
    "an unknown option": ("status", "--frobnicate"),
    "a missing argument": ("execute-phase",),
    "an argument too many": ("status", "1", "2"),
    "a bad choice": ("graph", "1", "--format", "png"),
    "a bad status of a handoff": ("handoff", "list", "--status", "bogus"),
    "a bad number": ("execute-phase", "1", "--max-attempts", "none"),
    "a missing value": ("log", "--limit"),
    "a reason that is missing": ("accept", "T1-01"),
    "two masters of standard output": ("execute-phase", "1", "--events"),
}


def test_wrong_usage_exits_2_with_and_without_json(project: Project) -> None:
    for mistake, arguments in USAGE.items():
        answer = project.quick(*arguments, "--json")
        assert (answer.code, answer.error["code"]) == (2, "usage"), mistake
        assert "--help" in answer.error["hint"] or answer.error["details"]["nearest"] in answer.error["hint"], mistake
        if "--events" not in arguments:
            words = project.quick(*arguments)
            assert (words.code, words.out, bool(words.err)) == (2, "", True), mistake


CLASHING = (
    "approve 1 --revoke --hash 00", "approve 1 --file a.json", "approve 1 --answer design=maybe",
    "approve 1 --expires soon", "approve 1 --expires ''", "audit bundle 1 --sign key",
    "check-plan 1 --diff --run-checks", "check-plan 1 --diff --verbose", "show T1-01 --diff --plan",
    "execute-phase 1 --ask --dry-run", "execute-phase 1 --ask --force", "log --kind nope",
    "metrics --since 2026-01-01 --prometheus", "plan discuss 1 --answer A=b --more", "plan discuss 1 --answer A",
    "prove", "quick ' '", "quick A --files 'a\nb'", "report 1 --write --html a", "roadmap --goal A",
    "show T1-01 --attempt 1", "show T1-01 --facts-only", "show T1-01 --diff --approve 00",
    "show T1-01 --debug --attempt 1",
    "stop --force --after-task", "watch 1 --all", "workflow run", "workflow run A --input b", "log --follow",
)  # fmt: skip
"""Options that exclude or need each other, and values that no repository accepts."""


def test_wrong_usage_is_reported_before_a_missing_repository(project: Project, tmp_path: Path) -> None:
    outside = Project(project.repo, tmp_path)
    for words in CLASHING:
        answer = outside.json(*shlex.split(words))
        assert (answer.code, answer.error["code"]) == (2, "log.unknown-kind" if "nope" in words else "usage"), words


def test_an_argument_that_is_no_text_is_refused_before_anything_happens(project: Project) -> None:
    project.plan([making("T1-01", "a.txt")])
    before = all_bytes(project.repo)
    for words in (
        "show @ --usage", "report @", "backup @", "plan add-task 1 --task a 'create b' true --builder @",
        "amend 1 --accept-deviation T1-01 @", "quick @ --files a --builder human",
        "plan add-task 1 --task @ 'create b' true",
    ):  # fmt: skip
        error = project.quick(*(word.replace("@", "a\udcff") for word in shlex.split(words)), "--json").error
        assert (error["code"], error["message"].endswith(": it is not UTF-8.")) == ("usage", True), words
    assert all_bytes(project.repo) == before


NAMELESS = (
    "execute-phase 1 --branch ''", "prove 1 --commit ''", "prove 1 --summary ''", "report 1 --html ''", "backup ''",
    "deinit --backup '' --yes", "import ''", "execute ''", "quick A --files '' --check true", "config get ''",
    "plan-phase 1 --from ''", "start T1-01 --by ''", "amend 1 --add-task ''", "fake-model --log '' --script a",
)  # fmt: skip
"""A variable that is not set leaves an empty value: without this, another branch, commit or file would be chosen."""


def test_an_empty_name_is_refused_before_anything_happens(project: Project) -> None:
    project.plan([making("T1-01", "a.txt")])
    before = all_bytes(project.repo)
    for words in NAMELESS:
        error = project.quick(*shlex.split(words), "--json").error
        assert (error["code"], error["message"].endswith(": it is empty.")) == ("usage", True), words
    assert all_bytes(project.repo) == before


WHOLE = {
    "plan research 1 --from none.md": "plan research --help",
    "plan add-task 1 --plan 07 --task A 'create b' true": "check-plan 1",
    "import README.md": "import README.md --from KIND",
    "import README.md --from checklst": "import README.md --from KIND",
    "accept T1-01 --why ''": "accept T1-01 --why REASON",
    "approve roles --revoke": "status",
    "log --kind nope": "help events",
    "fake-model --script README.md": "help fake-model shows one",
}


def test_what_to_do_about_a_wrong_value_is_a_whole_command(project: Project) -> None:
    project.plan([making("T1-01", "a.txt")])
    hints = {words: project.quick(*shlex.split(words), "--json").error["hint"] for words in WHOLE}
    assert hints == {words: f"idumb {hint}" for words, hint in WHOLE.items()}


def test_idumb_without_a_command_prints_the_help(project: Project) -> None:
    words = project.quick()
    assert words.code == 0
    assert words.out.startswith("Usage: idumb")
    assert "  execute-phase " in words.out
    assert project.quick("--json").error["code"] == "usage"


DIGITS = "9" * 5000


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        (PLAN, "T1-01", f"T1-{DIGITS}"),
        (".idumb/config.yaml", "", f"run: {{max_parallel: {DIGITS}}}\n"),
        (".planning/ROADMAP.md", "", f"# Roadmap\n\n- Phase {DIGITS}: A\n- Phase 1.{DIGITS}: B\n"),
    ],
    ids=["plan", "configuration", "roadmap"],
)
def test_a_number_of_thousands_of_digits_is_bad_input_or_text_in_every_file(
    project: Project, path: str, old: str, new: str
) -> None:
    """R-PLAN-5: `tests/format/test_large_numbers.py` has every place in a plan."""
    project.plan([task("T1-01", steps=[shell("true")])])
    place = project.folder / path
    place.write_text(place.read_text(encoding="utf-8").replace(old, new, 1) if old else new, encoding="utf-8")
    codes = {
        command: project.quick(command, *arguments, "--json").code
        for command, *arguments in (
            ("check-plan", "1"), ("status",), ("next",), ("graph", "1"), ("roadmap", "--add", "A")
        )
    }  # fmt: skip
    assert set(codes.values()) <= {0, 3, 4}, codes
    if path == PLAN:
        assert codes["check-plan"] == 3
    elif path == ".planning/ROADMAP.md":
        assert project.read(path).rstrip().endswith("Phase 2: A")
