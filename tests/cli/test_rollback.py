"""Rollback and undo as a user sees them: records, messages, and the state after a power failure."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from idumb.git.restore import write_back
from idumb.git.scan.path_state import Step
from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making, shell, task, write
from tests.support.warm import Warm


def _project(sandbox: GitSandbox, *tasks: str, settings: str = "") -> Project:
    sandbox.write_all({"README.md": "# A project\n"})
    project = Project(sandbox, sandbox.root)
    sandbox.commit("first")
    assert project.quick("init").code == 0
    project.configure(settings or "run:\n  max_attempts: 1\n")
    project.plan(tasks or (making("T1-01", "a.txt"), making("T1-02", "b.txt", after="T1-01")))
    return project


def _execute(project: Project, *flags: str) -> Answer:
    consent = project.quick("check-plan", "1", "--json").data["contract_hash"]
    return project.quick("execute-phase", "1", "--approve", consent, *flags, "--json")


def _kinds(project: Project) -> list[str]:
    return [event["kind"] for event in project.events()]


def _work(project: Project) -> list[str]:
    """Return what git reports about other files than the reports of a halted run."""
    return [line for line in project.repo.status() if ".idumb/brain/" not in line and "-SUMMARY.md" not in line]


def _refusing_hook(project: Project) -> Path:
    hook = project.repo.git_dir / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho no >&2\nexit 1\n", encoding="ascii")
    hook.chmod(0o755)
    return hook


def test_the_commit_of_the_reports_after_a_rollback_is_recorded(sandbox: GitSandbox) -> None:
    """R-GIT-3: the log records everything that idumb commits."""
    project = _project(sandbox)
    assert _execute(project).code == 0
    assert project.quick("rollback", "1", "--to", "T1-01", "--yes").code == 0
    commits = project.trailers("Idumb-Reports")
    recorded = [e for e in project.events() if e["kind"] == "reports.committed"]
    assert len(recorded) == len(commits)
    assert recorded[-1]["payload"]["commit"] == project.repo.head()
    assert ".idumb/brain/execution/1/checkpoint-T1-02.md" in recorded[-1]["payload"]["paths"]
    assert project.repo.status() == []


def test_rollback_and_undo_make_one_commit_each_with_an_up_to_date_report(sandbox: GitSandbox) -> None:
    """R-GIT-3: files, progress and reports in one commit; the report of a rolled-back phase is not "passed"."""
    project = _project(sandbox)
    assert _execute(project).code == 0
    report = ".planning/phases/1/1-VERIFICATION.md"
    verified, before = project.read(report), project.repo.head()
    for command, status in ((ROLLBACK, "unverified"), (UNDO, "passed"), (UNDO, "unverified"), (UNDO, "passed")):
        answer = project.quick(*command, "--yes", "--json")
        assert answer.code == 0, answer
        assert project.repo.git("rev-parse", "HEAD~1") == before
        assert answer.data["commit"] == project.repo.head()
        before = project.repo.head()
        assert f"\nstatus: {status}\n" in project.repo.git("show", f"HEAD:{report}")
        assert project.repo.status() == []
        shown = project.json("status").data["phases"][0]
        assert shown["verification"] == (None if status == "unverified" else "passed")
    assert re.sub("created: .*", "", project.read(report)) == re.sub("created: .*", "", verified)
    assert "unverified (tasks were rolled back after the verification)" in project.repo.git("show", f"HEAD~1:{report}")


def test_a_rollback_to_a_task_updates_the_report_and_the_phase_is_verified_again(sandbox: GitSandbox) -> None:
    """R-GIT-3: with commit policy `none`, only the file is corrected; nothing is committed."""
    project = _project(sandbox, settings="git: {commit: none}\n")
    assert _execute(project).code == 0
    head = project.repo.head()
    assert project.quick("rollback", "1", "--to", "T1-01", "--yes").code == 0
    assert "\nstatus: unverified\n" in project.read(".planning/phases/1/1-VERIFICATION.md")
    assert project.quick("resume", "1", "--json").code == 0
    assert "\nstatus: passed\n" in project.read(".planning/phases/1/1-VERIFICATION.md")
    assert project.repo.head() == head


ROLLBACK = ("rollback", "1", "--to", "start")
UNDO = ("undo",)


def _cloned(project: Project, to: Path) -> Project:
    to.parent.mkdir(exist_ok=True)
    project.repo.git("clone", "--quiet", str(project.folder), str(to))
    sandbox = GitSandbox(to)
    sandbox.git("config", "user.name", "Pat")
    sandbox.git("config", "user.email", "pat@example.invalid")
    return Project(sandbox, to)


def test_a_clone_does_not_repeat_a_phase_that_the_committed_report_calls_verified(
    sandbox: GitSandbox, tmp_path: Path
) -> None:
    """R-RUN-1: this contract was verified elsewhere; nothing changes, and every choice works."""
    change = task("T1-01", files="modify `README.md`", steps=[write("README.md", "changed\n")])
    project = _project(sandbox, change)
    assert _execute(project).code == 0
    clone = _cloned(project, tmp_path / "clone")
    before = clone.repo.ledger()
    for flags in ((), ("--dry-run",)):
        answer = _execute(clone, *flags)
        assert (answer.code, answer.error["code"]) == (4, "phase.verified"), answer
        assert ".planning/phases/1/1-VERIFICATION.md in HEAD says so" in answer.error["message"]
        assert [row["id"] for row in answer.error["details"]["choices"]] == ["leave", "look", "force"]
        assert clone.repo.ledger() == before
    clone.configure("run:\n  max_attempts: 2\n")
    assert _execute(clone).error is None or _execute(clone).error["code"] != "phase.verified"  # another contract


def test_a_clone_runs_rolled_back_phases_and_forced_ones(sandbox: GitSandbox, tmp_path: Path) -> None:
    """R-RUN-1, R-GIT-3: a corrected report blocks nothing, and an uncommitted one proves nothing."""
    project = _project(sandbox)
    assert _execute(project).code == 0
    clone = _cloned(project, tmp_path / "clone")
    (refused := _execute(clone)).error["details"]["choices"]
    assert [row["id"] for row in refused.error["details"]["choices"]] == ["leave", "look"]  # its files are there
    assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0
    assert _execute(_cloned(project, tmp_path / "again")).code == 0
    clone.repo.git("rm", "--quiet", "a.txt", "b.txt")
    clone.repo.git("commit", "--quiet", "-m", "gone")
    assert _execute(clone).error["code"] == "phase.verified"
    assert _execute(clone, "--force").code == 0


def test_reports_that_git_refuses_after_a_rollback_are_a_warning(sandbox: GitSandbox) -> None:
    """R-GIT-3: without a report commit, because of commit policy `none` or a hook that refuses reports."""
    project = _project(sandbox)
    assert _execute(project).code == 0
    hook = _refusing_hook(project)
    hook.write_text(
        "#!/bin/sh\ngit diff --cached --quiet -- .idumb .planning && exit 0\necho no reports >&2\nexit 1\n",
        encoding="ascii",
    )
    answer = project.quick("rollback", "1", "--to", "T1-01", "--yes", "--json")
    assert answer.code == 0, answer
    assert any("no reports" in warning for warning in answer.object["warnings"])


def test_undo_of_a_run_says_that_it_undid_a_run(sandbox: GitSandbox) -> None:
    project = _project(sandbox)
    assert _execute(project).code == 0
    undone = project.quick("undo", "--yes", "--json")
    assert undone.code == 0, undone
    assert undone.data["what"] == "run 1 of phase 1"
    assert not project.exists("a.txt")
    assert any(subject == "Undo: run 1 of phase 1" for subject in project.subjects())
    back = project.quick("undo", "--yes", "--json")
    assert back.code == 0, back
    assert project.exists("b.txt")
    assert set(project.statuses().values()) == {"completed"}


def test_an_accepted_deviation_is_rolled_back_with_its_task(sandbox: GitSandbox) -> None:
    """R-GIT-5: accepted files are in the task's ledger, so they are rolled back with it."""
    steps = (shell("echo made > a.txt; echo stray > stray.txt"),)
    project = _project(sandbox, task("T1-01", files="create `a.txt`", check="test -s a.txt", steps=steps))
    assert _execute(project).code == 5
    assert project.quick("accept", "T1-01", "--why", "both belong to it", "--json").code == 0
    assert _work(project) == []
    assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0
    assert not project.exists("stray.txt")
    assert not project.exists("a.txt")


@pytest.mark.parametrize("change", ["write", "link", "program"])
def test_a_conflict_names_commands_that_keep_the_user_s_version_and_continue(sandbox: GitSandbox, change: str) -> None:
    """R-GIT-3: the printed commands work for any file name."""
    path = "sub/it's here.txt"
    steps = [shell(f'mkdir sub; echo made > "{path}"')]
    project = _project(sandbox, task("T1-01", files=f"create `{path}`", check=f'test -s "{path}"', steps=steps))
    assert _execute(project).code == 0
    sandbox.remove(path)
    if change == "link":
        sandbox.link(path, "elsewhere")
    else:
        sandbox.write(path, "mine\n", mode=0o755 if change == "program" else None)
    refused = project.quick("rollback", "1", "--to", "start", "--yes", "--json")
    assert refused.error["code"] == "rollback.conflict"
    [file] = refused.error["details"]["files"]
    assert file["path"] == path
    assert file["put_back"] in _printed_commands(project.quick("rollback", "1", "--to", "start", "--yes"))
    for command in (file["keep"], file["put_back"]):
        subprocess.run(["sh", "-c", command], cwd=sandbox.root, check=True)
    assert project.quick("rollback", "1", "--to", "start", "--yes", "--json").code == 0
    kept = {"write": "mine\n", "program": "mine\n", "link": "elsewhere"}
    assert not project.exists(path)
    assert project.read(f"{path}.mine") == kept[change]


def _printed_commands(refused: Answer) -> list[str]:
    """Return the commands below the hint of a refusal, as a user pastes them."""
    below = refused.err.partition("  next: ")[2].splitlines()[1:]
    return [line.strip() for line in below if line.startswith("    ")]


def test_the_printed_commands_of_a_conflict_work_in_the_subfolder_in_which_idumb_was_started(
    sandbox: GitSandbox,
) -> None:
    """R-GIT-3: one command per line; only the files at the top and in the folder change."""
    steps = [write("README.md", "tasks\n"), write("-odd [ab].txt", "made\n"), shell("rm 'src/it is old.txt'")]
    files = "modify `README.md`, create `-odd [ab].txt`, delete `src/it is old.txt`"
    sandbox.write_all({"src/it is old.txt": "old\n", "src/deep/x.txt": "x\n"})
    project = _project(sandbox, task("T1-01", files=files, check="true", steps=steps))
    assert _execute(project).code == 0
    mine = {"README.md": "mine\n", "-odd [ab].txt": "mine too\n", "src/it is old.txt": "mine again\n"}
    sandbox.write_all(mine)
    sandbox.git("--literal-pathspecs", "add", "--", "-odd [ab].txt")
    below = Project(sandbox, sandbox.root / "src" / "deep")
    command = ("rollback", "1", "--to", "start", "--yes")
    refused = below.quick(*command)
    assert "restore that of the tasks, delete src/it is old.txt (the tasks left no such file)," in refused.err
    printed = _printed_commands(refused)
    assert len(printed) == 6
    subprocess.run(["/bin/sh", "-e"], input="\n".join(printed), text=True, cwd=below.start, check=True)
    assert below.quick(*command).code == 0
    assert {path: project.read(f"{path}.mine") for path in mine} == mine
    assert (project.read("README.md"), project.read("src/it is old.txt")) == ("# A project\n", "old\n")
    assert not project.exists("-odd [ab].txt")
    assert [path.name for path in below.start.iterdir()] == ["x.txt"]


def test_a_conflict_speaks_of_deletion_only_if_the_tasks_deleted_a_file(sandbox: GitSandbox) -> None:
    project = _project(sandbox)
    assert _execute(project).code == 0
    sandbox.write("a.txt", "mine\n")
    hint = project.quick("rollback", "1", "--to", "start", "--yes", "--json").error["hint"]
    assert hint.startswith("Save your version, restore that of the tasks, and run the command again")


@pytest.mark.parametrize("change", ["edit", "edit again", "replace a file that the tasks deleted"])
def test_the_commands_of_a_conflict_suffice_for_a_file_that_was_also_staged(sandbox: GitSandbox, change: str) -> None:
    """R-GIT-3: without the file, its bytes would exist only in the index, and the same command be refused once more."""
    gone = task("T1-02", files="delete `README.md`", check="true", after="T1-01", steps=[shell("rm README.md")])
    project = _project(sandbox, making("T1-01", "a.txt"), gone)
    assert _execute(project).code == 0
    path = "README.md" if change.startswith("replace") else "a.txt"
    sandbox.write(path, "mine\n")
    sandbox.git("add", path)
    if change == "edit again":
        sandbox.write(path, "mine again\n")
    refused = project.quick("rollback", "1", "--to", "start", "--yes", "--json")
    assert refused.error["code"] == "rollback.conflict"
    for file in refused.error["details"]["files"]:
        subprocess.run(["sh", "-c", f"{file['keep']} && {file['put_back']}"], cwd=sandbox.root, check=True)
    assert project.quick("rollback", "1", "--to", "start", "--yes", "--json").code == 0
    assert project.exists("README.md")
    assert not project.exists("a.txt")
    assert project.read(f"{path}.mine") == ("mine again\n" if change == "edit again" else "mine\n")
    assert project.exists(f"{path}.staged") == (change == "edit again")


def test_the_commands_of_a_conflict_unstage_no_file_that_a_name_would_match_as_a_pattern(sandbox: GitSandbox) -> None:
    """R-GIT-3: `[ab].txt` is also a pattern, and what is staged of `a.txt` may exist only in the index."""
    steps = [shell("echo made > '[ab].txt'")]
    project = _project(sandbox, task("T1-01", files="create `[ab].txt`", check="test -s '[ab].txt'", steps=steps))
    assert _execute(project).code == 0
    sandbox.write_all({"[ab].txt": "mine\n", "a.txt": "precious\n"})
    sandbox.git("--literal-pathspecs", "add", "[ab].txt", "a.txt")
    sandbox.write("a.txt", "later\n")
    refused = project.quick("rollback", "1", "--to", "start", "--yes", "--json")
    [file] = refused.error["details"]["files"]
    subprocess.run(["sh", "-c", f"{file['keep']} && {file['put_back']}"], cwd=sandbox.root, check=True)
    assert project.quick("rollback", "1", "--to", "start", "--yes", "--json").code == 0
    assert sandbox.git("show", ":a.txt") == "precious"
    assert not project.exists("[ab].txt")


@pytest.mark.parametrize("how", ["add a.txt", "add b.txt", "add --intent-to-add b.txt", "rm --cached --quiet a.txt"])
def test_a_rollback_whose_files_differ_from_head_in_the_index_only_makes_no_commit(
    sandbox: GitSandbox, how: str
) -> None:
    """R-GIT-3: git refuses an empty commit, and repeating the rollback, `resume` and `undo` would then fail as well."""
    steps = [write("a.txt", "two\n"), write("b.txt", "two\n")]
    failing = task("T1-02", files="modify `a.txt`, create `b.txt`", check="false", after="T1-01", steps=steps)
    project = _project(sandbox, making("T1-01", "a.txt"), failing)
    assert _execute(project).code == 1
    sandbox.git(*how.split())
    head = sandbox.head()
    answer = project.quick("rollback", "1", "--to", "T1-01", "--yes", "--json")
    assert answer.code == 0, answer
    assert answer.data["commit"] is None
    assert sandbox.head() == head
    assert (project.read("a.txt"), project.exists("b.txt")) == ("made\n", False)
    assert _work(project) == []
    assert project.quick("undo", "--yes", "--json").code == 0
    assert (project.read("a.txt"), project.read("b.txt")) == ("two\n", "two\n")


def test_accept_makes_no_commit_if_the_file_differs_from_head_in_the_index_only(sandbox: GitSandbox) -> None:
    """R-GIT-3: what was staged is kept, and the command that stages it again is printed."""
    failing = task("T1-02", files="modify `a.txt`", check="false", after="T1-01", steps=[write("a.txt", "two\n")])
    project = _project(sandbox, making("T1-01", "a.txt"), failing)
    assert _execute(project).code == 1
    sandbox.git("add", "a.txt")
    sandbox.write("a.txt", "made\n")
    head = sandbox.head()
    answer = project.quick("accept", "T1-02", "--why", "as before")
    assert answer.code == 0, answer
    assert sandbox.head() == head
    again = re.search(r"git cat-file blob \w+ \| git update-index -z --index-info", answer.err)
    assert again is not None, answer.err
    subprocess.run(["sh", "-c", again[0]], cwd=sandbox.root, check=True)
    assert sandbox.git("show", ":a.txt") == "two"


def test_a_conflict_over_a_file_that_the_tasks_deleted_says_so(sandbox: GitSandbox) -> None:
    gone = task("T1-01", files="delete `README.md`", check="test ! -e README.md", steps=[shell("rm README.md")])
    project = _project(sandbox, gone)
    assert _execute(project).code == 0
    sandbox.write("README.md", "mine\n")
    refused = project.quick("rollback", "1", "--to", "start", "--yes", "--json")
    [file] = refused.error["details"]["files"]
    assert file["put_back"] == "rm -f README.md"
    assert "delete README.md (the tasks left no such file)" in refused.error["hint"]
    assert file["keep"].endswith(" > README.md.mine")


def test_a_file_saved_during_a_rollback_is_kept_and_the_rollback_is_recorded(
    sandbox: GitSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half-restored files with a log that says nothing was restored would be an undefined state."""
    project = _project(sandbox)
    assert _execute(project).code == 0
    delete = write_back._delete

    def late(writing: write_back.Writing, step: Step) -> None:
        delete(writing, step)
        sandbox.write("a.txt", "mine")

    monkeypatch.setattr(write_back, "_delete", late)
    answer = project.quick("rollback", "1", "--to", "start", "--yes", "--json")
    assert answer.code == 0, answer
    assert answer.object["warnings"] == ["not restored, because they changed: a.txt"]
    assert project.read("a.txt") == "mine"
    assert not project.exists("b.txt")
    recorded = next(e for e in reversed(project.events()) if e["kind"] == "rollback.completed")
    assert (recorded["payload"]["paths"], recorded["payload"]["left"]) == (["b.txt"], ["a.txt"])
    assert [event for event in _kinds(project) if event == "rollback.abandoned"] == []


def test_a_file_saved_before_the_first_restore_stops_the_rollback(
    sandbox: GitSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = _project(sandbox)
    assert _execute(project).code == 0
    delete = write_back._delete

    def late(writing: write_back.Writing, step: Step) -> None:
        sandbox.write("b.txt", "mine")
        delete(writing, step)

    monkeypatch.setattr(write_back, "_delete", late)
    answer = project.quick("rollback", "1", "--to", "start", "--yes", "--json")
    assert answer.error["code"] == "rollback.conflict"
    assert "rollback.abandoned" in _kinds(project)
    assert (project.read("a.txt"), project.read("b.txt")) == ("made\n", "mine")


@pytest.mark.slow
@pytest.mark.parametrize("again", ["resume", "rollback", "undo", "accept"])
def test_any_command_after_a_killed_rollback_finishes_it_first(sandbox: GitSandbox, tmp_path: Path, again: str) -> None:
    """R-GIT-3, R-LOG-6: a kill between intent and record must not leave files and log inconsistent."""
    project = _project(sandbox)
    assert _execute(project).code == 0
    with Warm(tmp_path / "warm") as warm:
        hook, given = "tests.crash.rollback_faults:arrange", {"kill": "commit", "plant": ""}
        killed = warm.run(project.start, "rollback", "1", "--to", "T1-01", "--yes", hook=hook, given=given)
    assert killed.code == -9
    assert _kinds(project)[-1] == "rollback.intended", "the point is no longer between announcement and record"
    commands = {
        "resume": ("resume", "1"),
        "rollback": ("rollback", "1", "--to", "T1-01", "--yes"),
        "undo": ("undo", "--yes"),
        "accept": ("accept", "T1-02", "--why", "so"),
    }
    answer = project.quick(*commands[again], "--json")
    if again == "accept":
        assert answer.code == 4
        assert answer.error["code"] == "rollback.unfinished"
        return
    assert answer.code == 0, answer
    assert _kinds(project).count("rollback.completed") == 1
    assert project.exists("b.txt") == (again != "rollback")
    assert project.repo.status() == []


def test_a_rollback_works_after_git_collected_unreferenced_objects(sandbox: GitSandbox) -> None:
    """F24: refs keep merged task bases and accepted files."""
    first = task("T1-01", files="create `a.txt`", check="test -e allowed", steps=(shell("echo bad > a.txt"),))
    project = _project(sandbox, first, making("T1-02", "b.txt", after="T1-01"))
    assert _execute(project).code == 1
    sandbox.write("allowed", "")
    sandbox.git("add", "allowed")
    sandbox.git("commit", "--quiet", "-m", "mine")
    assert project.quick("resume", "1", "--retry-failed", "--json").code == 0
    sandbox.git("reflog", "expire", "--expire=now", "--all")
    sandbox.git("gc", "--quiet", "--prune=now")
    assert project.quick("rollback", "1", "--to", "start", "--yes", "--json").code == 0
    sandbox.git("gc", "--quiet", "--prune=now")
    assert project.quick("undo", "--yes", "--json").code == 0
    assert project.read("a.txt") == "bad\n"
    assert projects.user_bytes(sandbox.ledger(), sandbox.ledger()) == []


def test_the_document_of_an_earlier_attempt_is_rebuilt(sandbox: GitSandbox) -> None:
    """R-GIT-2: a run that was killed before it wrote the last document leaves the previous one."""
    project = _project(sandbox)
    assert _execute(project, "--no-verify").code == 0
    place = project.folder / ".idumb/brain/execution/1/checkpoint-T1-02.md"
    right = place.read_text(encoding="utf-8")
    place.write_text(re.sub('snapshot: "[0-9a-f]{8}', 'snapshot: "00000000', right), encoding="utf-8")
    assert project.quick("verify-work", "1", "--json").code == 0
    assert place.read_text(encoding="utf-8") == right


def test_undo_leaves_previously_uncommitted_work_uncommitted(sandbox: GitSandbox) -> None:
    """R-GIT-3, R-GIT-6: the files of a failed task are restored, and nothing commits them unasked."""
    bad = task("T1-02", files="create `b.txt`", check="false", after="T1-01", steps=[write("b.txt", "b\n")])
    project = _project(sandbox, making("T1-01", "a.txt"), bad)
    assert _execute(project).code == 1
    assert _work(project) == ["?? b.txt"]
    assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0
    assert not project.exists("a.txt")
    assert not project.exists("b.txt")
    assert project.quick("undo", "--yes").code == 0
    assert _work(project) == ["?? b.txt"]
    assert "a.txt" in project.repo.tree()
    assert project.read("b.txt") == "b\n"
