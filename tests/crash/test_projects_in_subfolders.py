"""kill -9 in a project in a subfolder, while its neighbour has work of its user and runs of its own (R-GIT-8)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash import harness
from tests.support import subfolders
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.subfolders import SubProject, unchanged


@pytest.fixture
def both(sandbox: GitSandbox) -> tuple[SubProject, SubProject]:
    return _both(sandbox)


def _both(sandbox: GitSandbox) -> tuple[SubProject, SubProject]:
    """Two projects with the same plan; the second has uncommitted, untracked, staged and deleted files of its user."""
    files = dict.fromkeys(("old.txt", "dirty.txt", "staged.txt", "deleted.txt"), "one\n")
    for folder in ("api", "web"):
        sandbox.write_all({f"{folder}/{name}": text for name, text in files.items()})
    sandbox.commit()
    api, web = subfolders.create(sandbox, "api"), subfolders.create(sandbox, "web")
    for project in (api, web):
        project.plan(harness.CHAIN)
    _work_of_the_user(web)
    return api, web


def _work_of_the_user(project: SubProject) -> None:
    repo, name = project.repo, project.name
    repo.write_all({f"{name}/staged.txt": "two\n", f"{name}/mine.txt": "mine\n", f"{name}/dirty.txt": "two\n"})
    repo.git("add", f"{name}/staged.txt")
    repo.write(f"{name}/staged.txt", "three\n")
    repo.remove(f"{name}/deleted.txt")


def _resumed(project: SubProject, consent: str) -> Answer:
    with unchanged(project):
        return harness.go_on(lambda command: harness.run(project, command, "1", "--approve", consent))


def _completed(project: SubProject) -> bool:
    return set(project.statuses().values()) == {"completed"}


def _killed_and_interleaved(api: SubProject, web: SubProject, at: int) -> None:
    consent = api.approval()
    with unchanged(api):
        killed = harness.run(api, "execute-phase", "1", "--approve", consent, at=at)
    assert killed.code in (harness.KILLED, 0), killed
    with unchanged(web):
        ran = web.execute("--no-verify")
    assert ran.code == 0, ran
    assert _resumed(api, consent).code == 0
    assert _completed(api)
    assert _completed(web)
    assert sorted(api.trailers("Idumb-Task")) == ["T1-01", "T1-01", "T1-02", "T1-02", "T1-03", "T1-03"]
    assert api.read("sub/a.txt") == "made\nmore\n"
    assert [line for line in api.repo.status() if " api/" in line and "/.idumb/" not in line] == []
    assert [(path.name, path.read_text()) for path in sorted(web.folder.glob("*.txt"))] == [
        ("dirty.txt", "two\n"), ("mine.txt", "mine\n"), ("staged.txt", "three\n"),
    ]  # fmt: skip


@pytest.mark.nightly
@pytest.mark.timeout(120)
@pytest.mark.parametrize("at", [4, 13, 16, 21, 30, 36])
def test_a_killed_run_ends_as_if_undisturbed_after_its_neighbour_ran(
    both: tuple[SubProject, SubProject], at: int
) -> None:
    """F30, R-RUN-2."""
    _killed_and_interleaved(*both, at)


@pytest.mark.nightly
@pytest.mark.timeout(120)
@pytest.mark.parametrize("at", [3, 6, 8, 10])
def test_a_killed_rollback_leaves_the_neighbour_alone_and_can_be_run_again(
    both: tuple[SubProject, SubProject], at: int
) -> None:
    """R-GIT-3."""
    api, web = both
    assert api.execute("--no-verify").code == 0
    before = {path: path.read_bytes() for path in sorted(Path(api.folder).rglob("*.txt"))}
    arguments = ("rollback", "1", "--to", "start", "--yes")
    with unchanged(api):
        killed = harness.run(api, *arguments, at=at)
    assert killed.code in (harness.KILLED, 0), killed
    with unchanged(web):
        assert web.execute("--no-verify").code == 0
    with unchanged(api):
        assert harness.run(api, *arguments).code in (0, 4)  # 4: the first one was finished, and nothing is left
        assert not api.exists("sub/a.txt")
        assert api.exists("old.txt")
        assert api.quick(*api.undoing(), "--json").code == 0
    assert {path: path.read_bytes() for path in sorted(Path(api.folder).rglob("*.txt"))} == before
    assert _completed(web)
