"""Private copies lie outside the git folder, and what only they hold is kept before they are removed (R-GIT-7)."""

from __future__ import annotations

import os
import shlex
import signal
import stat
from pathlib import Path

import pytest

from tests.support import project as projects
from tests.support import warm
from tests.support.gitrepo import GitSandbox
from tests.support.prepared import Prepared
from tests.support.project import Project, shell, task

RUN = "0123456789abcdef"


def new(sandbox: GitSandbox) -> Project:
    return projects.create(sandbox, files={"README.md": "# A project\n", ".gitignore": "node_modules/\n"})


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    return new(sandbox)


def where(project: Project, tmp_path: Path) -> Path:
    """The folder in which a step of a run in a clone was made."""
    steps = [shell(f"pwd > {tmp_path}/seen; stat -c %a . .. ../.. > {tmp_path}/modes; echo x > a.txt")]
    project.plan([task("T1-01", files="create `a.txt`", check="test -s a.txt", steps=steps)])
    answer = project.execute("--workspace", "clone", "--no-verify")
    assert answer.code == 0, answer
    return Path((tmp_path / "seen").read_text(encoding="utf-8").strip())


def test_a_clone_is_in_the_user_s_state_directory_and_private(project: Project, tmp_path: Path) -> None:
    folder = where(project, tmp_path)
    assert folder.parent == project.repo.clones
    assert folder.parent.parent == Path(os.environ["XDG_STATE_HOME"], "idumb-clones")
    assert (tmp_path / "modes").read_text(encoding="utf-8").split()[:2] == ["700", "700"]
    assert not folder.exists()


@pytest.mark.parametrize("then", ["another run", "doctor --fix"])
def test_what_a_command_left_that_was_killed_while_it_tried_the_place_of_clones_goes_with_the_next(
    project: Project, tmp_path: Path, then: str
) -> None:
    for folder in (project.repo.clones.parent, project.repo.clones, project.repo.clones / ".probe"):
        folder.mkdir(parents=True, mode=0o700)
    if then == "another run":
        where(project, tmp_path)
    else:
        assert project.quick("doctor", "--fix", "--json").code in (0, 1)
    assert not (project.repo.clones / ".probe").exists()


def test_without_a_variable_clones_are_in_the_system_s_state_directory(
    project: Project, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    assert where(project, tmp_path).parents[1] == home / ".local/state/idumb-clones"


def test_the_user_s_environment_moves_clones_and_its_folder_stays(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IDUMB_CLONES", str(tmp_path / "elsewhere"))
    assert where(project, tmp_path).parent == project.repo.clones
    assert project.repo.clones.parent == tmp_path / "elsewhere"
    assert (tmp_path / "elsewhere").is_dir()


@pytest.mark.parametrize("how", ["relative", "in the work tree", "cannot be written", "a link"])
def test_an_unusable_clone_folder_is_refused_at_once_and_the_variable_named(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """As in the sandbox of an agent, in which the user's state cannot be written."""
    (tmp_path / "file").write_text("x", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path)
    places = {
        "relative": "clones",
        "in the work tree": str(project.folder / "clones"),
        "cannot be written": str(tmp_path / "file/clones"),
        "a link": str(tmp_path / "link"),
    }
    project.plan([task("T1-01", files="create `a.txt`", check="test -s a.txt", steps=[shell("echo x > a.txt")])])
    consent = project.approval()
    monkeypatch.setenv("IDUMB_CLONES", places[how])
    before = project.repo.ledger()
    for flags in (("--workspace", "clone"), ("--dry-run",)):
        answer = project.quick("execute-phase", "1", "--approve", consent, *flags, "--json")
        assert (answer.code, answer.error["code"]) == (4, "clones.unusable"), answer
        assert "IDUMB_CLONES" in answer.error["message"] + answer.error["hint"]
    assert project.repo.ledger() == before
    assert project.events("--kind", "run.started") == []
    checks = {row["code"]: row for row in project.quick("doctor", "--json").data["checks"]}
    assert checks["clones.place"]["state"] == "warn"
    assert "IDUMB_CLONES" in str(checks["clones.place"])


def test_if_the_state_directory_is_in_the_working_tree_clones_are_in_the_git_folder(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A home that is a repository: a clone in the working tree would be one of its files."""
    project.repo.write(".gitignore", "node_modules/\n.state/\n")
    project.repo.commit("ignore", ".gitignore")
    monkeypatch.setenv("XDG_STATE_HOME", str(project.folder / ".state"))
    assert where(project, tmp_path).parent == project.repo.common_dir / "idumb/clones"


def test_what_a_builder_changes_outside_its_clone_is_named(project: Project, tmp_path: Path) -> None:
    """It could overwrite the user's uncommitted work, and nobody would notice."""
    project.repo.write_all({"notes.md": "mine\n"})
    script = tmp_path / "builder.sh"
    script.write_text(f"echo x > a.txt; echo bad > {project.folder}/notes.md\n", encoding="ascii")
    binding = f"builder: agent\nbindings:\n  agent: {{adapter: command, argv: [sh, '{script}']}}\n"
    project.configure(f"{binding}run: {{workspace: clone}}\n")
    project.plan([task("T1-01", files="create `a.txt`", check="test -s a.txt")])
    answer = project.execute("--no-verify")
    assert answer.code == 0
    said = "\n".join(answer.object["warnings"])
    assert "While T1-01 was built in a clone, files of your own working tree changed: notes.md." in said
    back = said.partition("notes.md as it was before T1-01: ")[2].splitlines()[0]
    assert project.repo.git(*shlex.split(back)[1:]) == "mine"


BUILT = (
    "echo half > a.txt; echo other > kept.txt; git add a.txt kept.txt; git commit -qm 'Half of it'; echo more > a.txt"
)


def _killed(sandbox: GitSandbox) -> Project:
    project = new(sandbox)
    interrupted(project, project.folder.parent, signal.SIGKILL)
    assert (clone_of(project) / "a.txt").read_text(encoding="utf-8") == "more\n"
    return project


@pytest.fixture
def killed_run(prepared: Prepared) -> Project:
    """A run that was killed while its builder worked in a clone."""
    return prepared.get(_killed)


def interrupted(project: Project, tmp_path: Path, number: signal.Signals) -> None:
    door = tmp_path / "clone-door"
    os.mkfifo(door)
    script = f"if [ -e {tmp_path}/clone-go ]; then echo whole > a.txt; git add a.txt; git commit -qm 'Add a'; exit; fi"
    argv = f'[sh, -c, "{script}; {BUILT}; cat {door}; sleep 60"]'
    project.configure(
        f"git: {{commit: builder}}\nbuilder: agent\nbindings:\n  agent: {{adapter: command, argv: {argv}}}\n"
    )
    project.plan([task("T1-01", files="create `a.txt`", check="test -s a.txt")])
    started = warm.of_this_process().start(project.start, "execute-phase", "1", "--approve", project.approval())
    handle = os.open(door, os.O_WRONLY)
    os.kill(started.pid, number)
    os.close(handle)
    started.wait()
    (tmp_path / "clone-go").touch()


def clone_of(project: Project) -> Path:
    (clone,) = [path for path in project.repo.clones.iterdir() if len(path.name) == 16]
    return clone


def kept(project: Project) -> str:
    snapshot = project.repo.kept()[name_of_kept(project)]
    assert project.repo.git("show", f"{snapshot}:worktree/a.txt") == "more"
    assert project.repo.git("show", f"{snapshot}:worktree/kept.txt") == "other"
    return snapshot


def name_of_kept(project: Project) -> str:
    (name,) = [name for name in project.repo.kept() if name.rpartition("/")[2] == "interrupted"]
    return name


def test_resume_keeps_and_names_what_a_killed_builder_left_in_its_clone(killed_run: Project) -> None:
    folder = clone_of(killed_run)
    answer = killed_run.quick("resume", "1", "--no-verify")
    assert answer.code == 0, answer
    assert f"git show {kept(killed_run)}:worktree/a.txt" in answer.err + answer.out
    [event] = killed_run.events("1", "--kind", "attempt.interrupted")
    assert (event["payload"]["ref"], event["payload"]["snapshot"]) == (name_of_kept(killed_run), kept(killed_run))
    commits = killed_run.repo.git("log", "--format=%s", f"{name_of_kept(killed_run)}-commits").splitlines()
    assert commits[0] == "Half of it"
    assert not folder.exists()
    assert killed_run.read("a.txt") == "whole\n"
    assert not killed_run.exists("kept.txt")


def test_an_interrupted_command_keeps_it_too(project: Project, tmp_path: Path) -> None:
    interrupted(project, tmp_path, signal.SIGINT)
    kept(project)
    task_id = project.events("1", "--kind", "attempt.interrupted")[0]["task"]
    shown = project.json("show", task_id).data["attempts"][0]
    assert shown["checkpoint"] == kept(project)
    assert f"git show {kept(project)}:worktree/a.txt" in shown["kept"]
    assert not project.repo.clones.exists()
    assert project.resume("--no-verify").code == 0
    kept(project)


def test_doctor_keeps_it_and_removes_the_clone(killed_run: Project) -> None:
    answer = killed_run.quick("doctor", "--fix", "--json")
    assert name_of_kept(killed_run) in str(answer.data["mended"])
    assert not killed_run.repo.clones.exists()
    kept(killed_run)


def test_deinit_puts_it_into_the_backup(killed_run: Project, tmp_path: Path) -> None:
    question = killed_run.quick("deinit", "--json")
    assert str(killed_run.repo.clones) in str(question.error["details"]["folders"])
    backup = tmp_path / "backup"
    assert killed_run.quick("deinit", "--yes", "--backup", str(backup), "--json").code == 0
    assert not killed_run.repo.clones.exists()
    killed_run.repo.git("fetch", "--quiet", str(backup / "refs.bundle"), "refs/idumb/*:refs/idumb/*")
    kept(killed_run)


def test_a_clone_stays_if_its_files_cannot_be_kept(killed_run: Project) -> None:
    (clone_of(killed_run) / "a.txt").unlink()
    objects = killed_run.repo.common_dir / "objects"
    refused = killed_run.folder.parent / "objects"
    objects.rename(refused)
    objects.write_text("no folder", encoding="ascii")
    assert killed_run.quick("doctor", "--fix", "--json").code != 0
    objects.unlink()
    refused.rename(objects)
    assert stat.S_ISDIR(clone_of(killed_run).stat().st_mode)
