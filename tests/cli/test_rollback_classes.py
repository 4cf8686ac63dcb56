"""Tasks with effects outside the files: their rollback commands, or a refusal; and no retry without the user.

An irreversible task runs only after a person has accepted exactly that task.
"""

from __future__ import annotations

import pytest

from tests.support import approvals, seed
from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.approvals import FIELDS, STRICT, approve, contract, refused, strict_task
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.prepared import prepared_project
from tests.support.project import Project, making, shell, task, write
from tests.support.terminal import answering


def _effect(id: str, path: str, rollback: str, *, after: str = "none") -> str:
    """A task with a file of its own and one line in `outside.log`, which git ignores, as its effect."""
    return task(
        id,
        files=f"create `{path}`",
        check="true",
        after=after,
        steps=(write(path, "made\n"), shell(f"echo did {id} {LOG}")),
        fields=f"- **Rollback:** {rollback}\n",
    )


def _taking_back(*commands: str) -> str:
    return "compensatable\n" + "".join(f"  - `{command}`\n" for command in commands)


LOG = ">> $IDUMB_REPOSITORY/outside.log"
IRREVERSIBLE = "irreversible: it tells the world"


def _project(sandbox: GitSandbox, *tasks: str) -> Project:
    """A plan of these tasks; each irreversible one is accepted by name, which it needs before it runs."""
    project = projects.create(sandbox)
    project.configure("run:\n  max_attempts: 2\n")
    project.plan(tasks)
    accepted = [t.split(":")[0].removeprefix("### ") for t in tasks if IRREVERSIBLE in t]
    if accepted:
        named = [word for one in accepted for word in ("--accept-irreversible", one)]
        assert project.quick(*project.approving(), *named).code == 0
    return project


def _ran(sandbox: GitSandbox, *tasks: str) -> Project:
    project = _project(sandbox, *tasks)
    assert run(project, "--no-verify").code == 0
    return project


def _back(project: Project, to: str = "start", *more: str) -> Answer:
    return project.quick("rollback", "1", "--to", to, "--yes", *more, "--json")


def test_compensation_commands_run_newest_task_first_and_before_files_are_restored(sandbox: GitSandbox) -> None:
    """R-GIT-4, R-PLAN-3: each has the files that its task left, in a checkout, and the path of the user's."""
    project = _ran(
        sandbox,
        _effect("T1-01", "a.txt", _taking_back(f"cat a.txt && test ! -e b.txt && echo undid 1 {LOG}", "> a.txt")),
        _effect("T1-02", "b.txt", _taking_back(f"test -e b.txt && echo undid 2 {LOG}", f"echo undid 2 fully {LOG}"),
                after="T1-01"),
    )  # fmt: skip
    answer = _back(project)
    assert answer.code == 0, answer
    assert answer.data["compensated"] == ["T1-02", "T1-01"]
    assert project.read("outside.log").splitlines()[2:] == ["undid 2", "undid 2 fully", "undid 1"]
    assert not project.exists("a.txt")
    undone = project.quick(*project.undoing(), "--json")
    assert undone.code == 0, undone
    assert project.read("a.txt") == "made\n"
    assert any("T1-01" in warning and "is not repeated" in warning for warning in undone.object["warnings"])


def test_a_failed_compensation_stops_the_rollback_and_completed_ones_are_not_repeated(
    sandbox: GitSandbox,
) -> None:
    """R-GIT-4: exit 1, recorded, and no file has moved."""
    project = _ran(
        sandbox,
        _effect("T1-01", "a.txt", _taking_back("test -e $IDUMB_REPOSITORY/fixed.log")),
        _effect("T1-02", "b.txt", _taking_back(f"echo undid 2 {LOG}"), after="T1-01"),
    )
    failed = _back(project)
    assert failed.code == 1, failed
    assert failed.error["code"] == "rollback.command-failed"
    assert failed.error["details"]["done"] == ["T1-02"]
    assert project.exists("a.txt")
    assert project.exists("b.txt")
    recorded = [e for e in project.events("--task", "T1-01") if e["kind"] == "evidence.recorded"]
    assert recorded[-1]["payload"]["result"] == "failed"
    project.repo.write("fixed.log", "")
    again = _back(project)
    assert again.code == 0, again
    assert again.data["compensated"] == ["T1-01"]
    assert project.read("outside.log").count("undid 2") == 1
    assert not project.exists("b.txt")


def test_a_rollback_past_an_irreversible_task_is_refused_unless_the_task_is_named(sandbox: GitSandbox) -> None:
    """R-GIT-4, F64: its effect remains, and the task is retried only when the user says so."""
    project = _ran(
        sandbox,
        _effect("T1-01", "a.txt", IRREVERSIBLE),
        _effect("T1-02", "b.txt", "reversible", after="T1-01"),
    )
    before = project.repo.ledger()
    refused = _back(project)
    assert refused.code == 4, refused
    assert refused.error["code"] == "rollback.irreversible"
    assert "--past T1-01" in refused.error["hint"]
    assert "it tells the world" in project.quick("rollback", "1", "--to", "start", "--yes").err
    assert projects.user_bytes(before, project.repo.ledger()) == []
    assert _back(project, "T1-01").code == 0
    assert not project.exists("b.txt")
    past = _back(project, "start", "--past", "t1-01")
    assert past.code == 0, past
    assert past.data["past"] == ["T1-01"]
    assert any("tells the world" in warning for warning in past.object["warnings"])
    waiting = project.resume("--no-verify")
    assert waiting.code == 5, waiting
    assert project.read("outside.log").count("did T1-01") == 1
    assert waiting.data["decisions"][0]["kind"] == "effect"


def test_consent_shows_the_commands_of_a_rollback_and_those_of_the_plan_that_ran_are_run(sandbox: GitSandbox) -> None:
    """R-GIT-4: such a command needs consent, so the user sees it; those of a changed plan have none."""
    project = _ran(sandbox, _effect("T1-01", "a.txt", _taking_back(f"echo agreed {LOG}")))
    project.plan([_effect("T1-01", "a.txt", _taking_back(f"echo other {LOG}"))])
    refused = project.quick("execute-phase", "1", "--force", "--json")
    assert refused.error["code"] == "consent.missing"
    assert any(f"echo other {LOG}, on rollback" in line for line in refused.error["details"]["evidence"])
    assert _back(project).code == 0
    assert project.read("outside.log").splitlines()[1:] == ["agreed"]


def test_the_commands_of_a_rollback_need_consent_also_if_the_configuration_changed(sandbox: GitSandbox) -> None:
    """R-LOCK-4."""
    project = _ran(sandbox, _effect("T1-01", "a.txt", _taking_back(f"echo agreed {LOG}")))
    project.configure("checks: {home: user}\n")
    assert project.quick("approve", "1", "--revoke").code == 0
    assert (_back(project).error["code"], project.exists("a.txt")) == ("consent.missing", True)


project = prepared_project(approvals.create)


def _irreversible(project: Project, *, head: str = "") -> None:
    fields = FIELDS if head else ""
    last = task(
        "T1-02", files="create `b.txt`", check="test -s b.txt", after="T1-01",
        steps=(write("b.txt", "x"), shell("echo told >> $IDUMB_REPOSITORY/outside.log")),
        fields=f"{fields}- **Rollback:** irreversible: it tells the world\n",
    )  # fmt: skip
    project.plan([making("T1-01", "a.txt", fields=fields), last], head=head)


@pytest.mark.parametrize("head", seed.one_on_a_push(["", STRICT], "guided or strict"))
def test_an_irreversible_task_runs_only_if_that_task_was_accepted(project: Project, head: str) -> None:
    """R-LOCK-9, R-GIT-4."""
    _irreversible(project, head=head)
    answer = approve(project)
    assert any("T1-02" in warning for warning in answer.object["warnings"])
    details = refused(approvals.run(project, "--approve", contract(project)), "irreversible.not-accepted")
    assert details["tasks"] == ["T1-02"]
    assert details["choices"][0]["command"].endswith("--accept-irreversible T1-02")
    assert not project.exists("a.txt")
    approve(project, "--accept-irreversible", "T1-02")
    assert approvals.run(project, "--no-verify").code == 0
    assert project.read("outside.log") == "told\n"
    project.quick("approve", "1", "--revoke", "--json")
    assert project.resume("--no-verify").code == 0, "nothing runs any more, so nothing needs an approval"


def test_accepting_one_irreversible_task_accepts_no_other(project: Project) -> None:
    """R-LOCK-9."""
    effect = "- **Rollback:** irreversible: it tells the world\n"
    project.plan([making("T1-01", "a.txt", fields=effect), making("T1-02", "b.txt", fields=effect)])
    approve(project, "--accept-irreversible", "T1-02")
    details = refused(approvals.run(project, "--approve", contract(project)), "irreversible.not-accepted")
    assert details["tasks"] == ["T1-01"]
    assert not project.exists("b.txt")


def test_the_acceptance_of_an_irreversible_task_expires_with_its_approval(project: Project) -> None:
    """R-LOCK-9."""
    _irreversible(project)
    approve(project, "--accept-irreversible", "T1-02")
    project.configure("run: {max_attempts: 2}\n")
    refused(approvals.run(project, "--approve", contract(project)), "irreversible.not-accepted")


def test_only_irreversible_tasks_can_be_accepted_and_only_by_name(project: Project) -> None:
    """R-LOCK-9."""
    _irreversible(project)
    for name in ("T1-01", "T1-09", "all"):
        answer = project.json(*project.approving(), "--accept-irreversible", name)
        assert (answer.code, answer.error["code"]) == (3, "approval.not-irreversible")
        assert "T1-02" in answer.error["message"]


@pytest.mark.parametrize(("typed", "code"), seed.one_on_a_push([("yes", 0), ("", 4)], "an answer about an effect"))
def test_a_guided_run_asks_about_each_irreversible_task_at_the_terminal(
    project: Project, monkeypatch: pytest.MonkeyPatch, typed: str, code: int
) -> None:
    """R-LOCK-9, R-ASK-2."""
    _irreversible(project)
    screen = answering(monkeypatch, "run", typed)
    assert project.quick("execute-phase", "1", "--no-verify").code == code
    assert "it tells the world" in screen.getvalue()
    assert project.exists("outside.log") == (code == 0)


def test_approving_again_without_the_task_withdraws_its_acceptance(project: Project) -> None:
    """R-LOCK-9."""
    project.plan(
        [strict_task("T1-01", "a.txt", fields="- **Rollback:** irreversible: it mails everybody\n")], head=STRICT
    )
    approve(project, "--accept-irreversible", "T1-01")
    approval = approve(project).data
    assert approval["no_longer_accepted"] == ["T1-01"]
    assert "this approval ends the acceptance of T1-01" in approval["shown"]
    refused(approvals.run(project), "irreversible.not-accepted")
    assert approve(project, "--accept-irreversible", "T1-01").data["no_longer_accepted"] == []
