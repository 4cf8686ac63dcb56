"""Every command, and the assertion that one of them refuses without changing anything."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.gitrepo import ByteLedger, GitSandbox
from tests.support.project import Project

# An argument list for every command, so that each is seen to refuse.
RUNNING = (("execute-phase", "1"), ("resume", "1"))
EVERY = (
    *RUNNING,
    ("check-plan", "1"),
    ("graph", "1"),
    ("verify-work", "1"),
    ("rollback", "1", "--to", "start", "--yes"),
    ("undo", "--yes"),
    ("status",),
    ("next",),
    ("roadmap",),
    ("show", "T1-01"),
    ("show", "T1-01", "--diff"),
    ("accept", "T1-01", "--why", "a reason"),
    ("skip", "T1-01", "--why", "a reason"),
    ("decisions",),
    ("decide", "T1-01.AC-1.1", "yes"),
    ("log", "1"),
    ("init",),
)


def all_bytes(repo: GitSandbox) -> tuple[ByteLedger, Mapping[str, str]]:
    """Every byte of the user's, and idumb's own refs."""
    return repo.ledger(), repo.kept("refs/idumb/")


def refused(project: Project, *arguments: str, exit: int, code: str) -> tuple[dict[str, object], str]:
    """Assert that the command refuses with this code and a next step, as text and JSON, and changes nothing."""
    before = all_bytes(project.repo)
    answer = project.quick(*arguments, "--json")
    words = project.quick(*arguments)
    assert all_bytes(project.repo) == before
    assert (answer.code, answer.error["code"]) == (exit, code), answer.out
    assert words.code == exit
    assert answer.error["hint"], answer.out
    assert answer.error["hint"] in words.err
    assert words.out == "" or "findings" in answer.data
    return answer.error, words.out + words.err
