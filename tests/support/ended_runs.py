"""Projects in which a run of phase 1 has ended, for the fixture `prepared`."""

from __future__ import annotations

from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making, task, write

SECOND = making("T1-02", "b.txt", after="T1-01")


def done(sandbox: GitSandbox) -> Project:
    """T1-01 made `a.txt`; the phase is verified."""
    project = projects.create(sandbox)
    project.plan([making("T1-01", "a.txt")])
    assert project.execute().code == 0
    return project


def failed(sandbox: GitSandbox) -> Project:
    """T1-01 made an `a.txt` in which its check finds nothing good; T1-02 needs it."""
    project = projects.create(sandbox)
    bad = task("T1-01", files="create `a.txt`", check="grep -q good a.txt", steps=[write("a.txt", "bad\n")])
    project.plan([bad, SECOND])
    assert project.execute("--max-attempts", "1").code == 1
    return project


def replaced(sandbox: GitSandbox) -> Project:
    """Phase 1 ran twice; the second run carried no task over."""
    project = done(sandbox)
    assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0
    project.plan([making("T1-01", "a.txt", "y\n")])
    assert project.execute().code == 0
    return project
