"""`idumb prove` reruns the evidence in a fresh clone of the commit, and changes nothing (R-RUN-3, R-RUN-13)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support import ended_runs, permissions
from tests.support.answer import Answer
from tests.support.plans import PLAN, run
from tests.support.prepared import Prepared
from tests.support.project import Project, failing_task, making, task, write

NOTHING = "Nothing is proven: the plan has no check that can be rerun."
HEAD = "success_criteria: ['A is there — check: `test -s a.txt`', 'It reads well — opinion']\n"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, which is empty after each test."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def done(project: Project, *tasks: str, head: str = "") -> None:
    project.plan(tasks, head=head)
    ended = run(project, *(() if head else ("--no-verify",)))
    assert ended.code in (0, 1), ended
    assert set(project.statuses().values()) == {"completed"}


def prove(project: Project, *arguments: str, code: int = 0) -> Answer:
    before, events = project.repo.ledger(), len(project.events())
    refs = project.repo.refs()
    answer = project.quick("prove", "1", *arguments, "--json")
    assert answer.code == code, answer
    assert project.repo.ledger() == before
    assert (project.repo.refs(), len(project.events())) == (refs, events)
    assert left(Path(os.environ["TMPDIR"])) == []
    return answer


def left(place: Path) -> list[Path]:
    """Return what is in the folder for temporary files, without the empty folder of this user's checks."""
    return [path for path in place.rglob("*") if path.name != f"idumb-{os.geteuid()}"]


def results(answer: Answer) -> dict[str, str]:
    return {row["id"]: row["result"] for row in answer.data["tasks"]}


def checks(answer: Answer, number: int = 0) -> dict[str, str]:
    return {check["subject"]: check["result"] for check in answer.data["tasks"][number]["checks"]}


def commit_of(project: Project, task: str) -> str:
    return project.repo.git("log", "--format=%H", f"--grep=^Idumb-Task: {task}$")


def test_an_honest_phase_is_proven_at_its_newest_commit_and_each_task_at_its_own(project: Project) -> None:
    done(project, making("T1-01", "a.txt"), making("T1-02", "b.txt", after="T1-01"), head=HEAD)
    first, last = commit_of(project, "T1-01"), commit_of(project, "T1-02")
    answer = prove(project)
    assert (answer.data["commit"], answer.data["proven"]) == (last, True)
    assert results(answer) == {"T1-01": "proven", "T1-02": "proven"}
    assert {c["subject"]: c["result"] for c in answer.data["criteria"]} == {"AC-1": "same", "AC-2": "not_run"}
    one = prove(project, "t1-01")
    assert [(row["id"], row["commit"]) for row in one.data["tasks"]] == [("T1-01", first)]
    text = project.quick("prove", "01").out
    assert f"T1-02  proven  at {last[:7]}  1 as recorded" in text


def test_a_failed_check_names_the_files_that_git_ignores(project: Project, tmp_path: Path) -> None:
    step = write("a.txt", "made\n")
    once = tmp_path / "once"
    once.touch()
    done(project, task("T1-01", files="create `a.txt`", check=f"test -e {once} || cat a.log", steps=[step]))
    once.unlink()
    project.repo.write("a.log", "cheat\n")
    answer = prove(project, code=1)
    assert (results(answer), answer.error["code"]) == ({"T1-01": "mismatch"}, "prove.mismatch")
    assert checks(answer) == {"AC-1": "now_fails"}
    assert any("git ignores in your working tree: a.log" in warning for warning in answer.object["warnings"])
    text = project.quick("prove", "1")
    assert f"T1-01 AC-1 now fails, exit 1: test -e {once} || cat a.log" in text.out
    assert "  | cat: a.log: No such file or directory" in text.out
    assert "  next: idumb show T1-01" in text.err


@pytest.mark.nightly
def test_nothing_runs_without_consent_or_without_evidence(project: Project, home: Path) -> None:
    project.plan([making("T1-01", "a.txt", criteria=f"  - [ ] ran — check: `touch {home}/ran`\n")])
    assert project.quick("prove", "1", "--json").error["code"] == "prove.nothing-done"
    assert run(project, "--no-verify").code == 0
    (home / "ran").unlink()
    for stored in (home / "state").rglob("consent*"):
        subprocess.run(["rm", "-rf", str(stored)], check=True)
    refused = project.quick("prove", "1", "--json")
    assert (refused.code, refused.error["code"]) == (4, "consent.missing"), refused
    assert not (home / "ran").exists()
    assert project.quick("prove", "1", "T1-09", "--json").error["code"] == "task.unknown"
    project.plan([failing_task("T2-01", "b.txt")], phase="2")
    consent = project.approval("2")
    failed = project.quick("execute-phase", "2", "--approve", consent, "--max-attempts", "1", "--json")
    assert failed.code == 1
    for arguments in (("2",), ("2", "T2-01")):
        nothing = project.quick("prove", *arguments, "--json")
        assert (nothing.code, nothing.error["code"]) == (4, "prove.nothing-done")
    assert project.json("drop", "2", "--why", "no").code == 0
    assert project.quick("prove", "2", "--json").error["hint"] == "idumb next"


def test_a_changed_configuration_leaves_a_verified_phase_verified_and_proven(prepared: Prepared, home: Path) -> None:
    """R-LOG-7, R-LOCK-3: only what changes how checks run needs consent again."""
    project = prepared.get(ended_runs.done)
    binding = "builder: b\nbindings: {b: {adapter: command, argv: [coder]}}\n"
    project.configure(binding)
    (row,) = project.quick("status", "--json").data["phases"]
    assert (row["state"], row["changed_since_run"]) == ("verified", False)
    assert project.quick("check-plan", "1", "--json").data["verified"]
    assert project.quick("execute-phase", "1", "--json").error["code"] == "phase.verified"
    assert project.quick("resume", "1", "--json").code == 0
    assert project.json("verify-work", "1").code == 0
    assert project.json("status").data["phases"][0]["state"] == "verified"
    assert prove(project).data["proven"]
    project.configure(f"{binding}checkout: {{prepare: [touch {home}/prepared]}}\n")
    refused = project.quick("prove", "1", "--json")
    assert (refused.code, refused.error["code"]) == (4, "consent.missing")
    assert refused.error["details"]["changed"] == ["checks"]
    assert "you agreed to its contract, but not to how checks run" in refused.error["message"]
    assert not (home / "prepared").exists()
    agreed = refused.error["hint"].split()[1:]
    approved = project.quick(*agreed, "--json")
    assert (approved.code, approved.data["next"]) == (0, ["idumb next"])  # a verified phase is not run again
    assert prove(project).data["proven"]
    project.configure(binding)
    assert project.quick("prove", "1", "--json").error["details"]["changed"] == ["checks"]


@pytest.fixture
def clone(prepared: Prepared, tmp_path: Path) -> Project:
    """A colleague's clone of a finished phase of one task, which creates `a.txt`."""
    return prepared.get(ended_runs.done).clone(tmp_path / "clone")


def agreed(project: Project) -> str:
    """The option that agrees to what `prove` refuses to run without consent."""
    refused = project.quick("prove", "1", "--json")
    assert (refused.code, refused.error["code"]) == (4, "consent.missing")
    assert refused.error["details"]["evidence"] == ["test -s a.txt"]
    return str(refused.error["details"]["contract_hash"])


def test_a_colleague_proves_a_phase_without_a_log(clone: Project, tmp_path: Path) -> None:
    before = clone.repo.ledger()
    summary = tmp_path / "summary.md"
    answer = clone.quick("prove", "1", "--approve", agreed(clone), "--summary", str(summary), "--json")
    assert answer.code == 0, answer
    assert "| T1-01 | proven |" in summary.read_text(encoding="utf-8")
    assert summary.read_text(encoding="utf-8").endswith("|\n\n"), "one empty line parts two of them"
    assert (answer.data["run"], answer.data["commit"]) == (None, clone.repo.head())
    assert [(row["id"], row["result"]) for row in answer.data["tasks"]] == [("T1-01", "proven")]
    assert clone.repo.ledger() == before


def test_work_that_a_person_accepted_is_not_proven_by_a_check_that_still_fails(project: Project) -> None:
    project.plan([failing_task("T1-01", "a.txt"), making("T1-02", "b.txt")])
    assert run(project, "--max-attempts", "1").code == 1
    assert project.json("accept", "T1-01", "--why", "it is fine").code == 0
    assert project.json("resume", "1").data["verification"]["status"] == "passed"
    answer = prove(project, code=1)
    assert results(answer) == {"T1-01": "mismatch", "T1-02": "proven"}
    assert (checks(answer), answer.data["proven"]) == ({"AC-1": "still_fails"}, False)
    assert "T1-01 AC-1 still fails, exit 1: false" in project.quick("prove", "1").out


def test_a_check_that_an_amendment_changed_is_not_as_recorded(project: Project) -> None:
    invariants = "invariants: [{id: INV-1, text: it is not there, check: test ! -e %s.txt}]\n"
    tasks = [making("T1-01", "a.txt"), failing_task("T1-02", "b.txt", after="T1-01")]
    project.plan(tasks, head=invariants % "bad")
    assert run(project, "--max-attempts", "1").code == 1
    for name, result, code in (("worse", "changed_command", 0), ("a", "now_fails", 1)):
        project.plan(tasks, head=invariants % name)
        assert project.json("amend", "1", "--from-file", "--yes").code == 0
        answer = prove(project, "T1-01", code=code)
        assert checks(answer) == {"AC-1": "same", "invariant INV-1": result}
        why = {check["why"] for check in answer.data["tasks"][0]["checks"]}
        assert why == {"", "the evidence was recorded for another command: test ! -e bad.txt"}


def test_a_phase_without_a_check_to_rerun_is_not_proven(project: Project) -> None:
    """What a person said is recorded, but no clone repeats it; an unproven criterion has no record anywhere."""
    criteria = "  - [ ] nice — human\n  - [ ] quick\n"
    project.plan([making("T1-01", "a.txt", criteria=criteria)])
    run(project)
    assert project.json("decide", "T1-01.AC-1.1", "yes").code == 0
    project.json("resume", "1", "--no-verify")
    project.commit_own()
    for flags in ((), ("T1-01", "--commit", "HEAD")):
        answer = project.quick("prove", "1", *flags, "--json")
        assert (answer.code, answer.data["proven"], answer.error["message"]) == (1, False, NOTHING), answer
    assert {row["subject"]: row["why"] for row in answer.data["tasks"][0]["checks"]}["AC-2"].startswith(
        "the plan names"
    )
    assert "nothing to rerun" in project.quick("prove", "1").out


def test_a_clone_that_nobody_can_write_is_proven(clone: Project) -> None:
    def prove_it() -> None:
        assert clone.quick("prove", "1", "--approve", agreed(clone), "--json").code == 0

    subprocess.run(["chmod", "-R", "a-w", clone.folder], check=True)
    permissions.call_obeying(prove_it)


@pytest.mark.nightly
def test_what_the_clone_borrows_from_the_working_tree_is_named(project: Project) -> None:
    """Whether the log or HEAD says what to prove."""
    project.configure("checkout: {provide: [data.log]}\n")
    project.repo.write("data.log", "x\n")
    step = write("a.txt", "made\n")
    done(project, task("T1-01", files="create `a.txt`", check="test -s a.txt && test -s data.log", steps=[step]))
    words = "data.log is copied from your working tree (checkout.provide); another clone does not have it"
    for flags in ((), ("--commit", "HEAD")):
        assert words in project.json("prove", "1", *flags).object["warnings"]


def test_a_later_commit_that_breaks_a_check_is_not_proven(clone: Project) -> None:
    """Also where the log is, if HEAD is asked for."""
    consent = agreed(clone)
    clone.repo.commit_with({"a.txt": ""}, "empty it")
    answer = clone.quick("prove", "1", "--approve", consent, "--json")
    assert (answer.code, answer.error["code"]) == (1, "prove.mismatch")
    assert answer.data["tasks"][0]["result"] == "mismatch"


def test_a_task_without_a_commit_is_not_proven(project: Project) -> None:
    """No report says that the phase was verified, so nothing stands for the missing commit."""
    project.plan([making("T1-01", "a.txt"), making("T1-02", "b.txt")])
    assert run(project, "--no-verify").code == 0
    first = project.repo.git("log", "--format=%H", "--grep=^Idumb-Task: T1-01$")
    project.repo.git("reset", "--soft", first)  # someone made one commit of the rest, without its trailers
    project.repo.git("commit", "--quiet", "-m", "the rest")
    answer = project.quick("prove", "--commit", "HEAD", "--json")
    assert {row["id"]: row["result"] for row in answer.data["tasks"]} == {"T1-01": "proven", "T1-02": "no_commit"}
    for other in (first, "none", "--all"):
        assert project.quick("prove", f"--commit={other}", "--json").error["code"] == "prove.other-commit"
    project.repo.git("tag", "v1")
    for name in ("v1", "@", "refs/heads/main", project.repo.head()[:8]):
        assert project.quick("prove", f"--commit={name}", "--json").data["commit"] == project.repo.head()


@pytest.mark.nightly
def test_after_a_squash_the_refusal_names_the_proof_of_head(project: Project) -> None:
    project.repo.git("switch", "--quiet", "-c", "feature")
    done(project, making("T1-01", "a.txt"), head=HEAD.partition(",")[0] + "]\n")  # without the opinion it is verified
    project.repo.git("switch", "--quiet", "main")
    project.repo.git("merge", "--quiet", "--squash", "feature")
    project.repo.git("commit", "--quiet", "-m", "squashed")
    project.repo.git("branch", "--quiet", "-D", "feature")
    refused = prove(project, code=1)
    assert results(refused) == {"T1-01": "no_commit"}
    assert "idumb prove 1 --commit HEAD" in project.quick("prove", "1").err
    assert prove(project, "--commit", "HEAD").data["proven"]
    assert project.quick("prove", "--commit", "HEAD", "--json").data["phase"] == "1"


@pytest.mark.parametrize("path", [PLAN, ".idumb/config.yaml"])
def test_what_is_not_committed_as_it_is_now_is_refused(clone: Project, path: str) -> None:
    clone.repo.write(path, clone.read(path) + "\n")
    assert clone.quick("prove", "1", "--json").error["code"] == "prove.uncommitted"


def test_the_script_of_the_summary_installs_what_checks_need_and_fails_without_the_commit(
    project: Project, tmp_path: Path
) -> None:
    """In a clone that lacks the commit, no check runs in an empty folder: there, some would pass.

    In another clone, `prove` asks about what installs it, too.
    """
    project.configure("checkout: {prepare: ['mkdir -p tool && touch tool/x']}\n")
    project.repo.write(".gitignore", "tool/\n")
    criteria = "  - [ ] x — check: `! test -e b.txt && test -f tool/x`\n  - [ ] y — check: `grep -q made a.txt`\n"
    made = task("T1-01", files="create `a.txt`", criteria=criteria, steps=[write("a.txt", "made\n")])
    later = task(
        "T1-02", files="modify `a.txt`", check="test -s a.txt", after="T1-01", steps=[write("a.txt", "again\n")],
        fields="- **Replaces:** T1-01/AC-2\n",
    )  # fmt: skip
    done(project, made, later)
    script = project.read(".planning/phases/1/1-SUMMARY.md").partition("```sh\n")[2].partition("```")[0]
    shallow = tmp_path / "shallow"
    project.repo.git("clone", "--quiet", "--depth", "1", project.repo.root.as_uri(), str(shallow))
    said = [
        subprocess.run(["sh"], input=script, cwd=folder, capture_output=True, text=True, check=True)
        for folder in (project.repo.root, shallow)
    ]
    names = ("T1-01 AC-1", "T1-02 AC-1")  # T1-02 replaces the other criterion
    assert [one.stdout.splitlines() for one in said] == [[f"exit {code}: {name}" for name in names] for code in (0, 2)]
    assert "this repository lacks the commit" in said[1].stderr
    refused = project.clone(tmp_path / "clone").json("prove", "1")
    assert refused.error["details"]["evidence"][0] == "mkdir -p tool && touch tool/x"
