"""Known secrets are in nothing that idumb keeps or says, and enter no commit unasked (R-LOG-3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash import secrets
from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, task, write

VALUE = "hunter-Zq81xWvT-2"
TOKEN = "ghp_" + "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z"
HANDED = "bindings:\n  other: {adapter: command, argv: ['true'], environment: [API_TOKEN]}\n"


@pytest.fixture
def project(sandbox: GitSandbox, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A value of an agent's variable is known as a secret, whoever builds."""
    monkeypatch.setenv("API_TOKEN", VALUE)
    made = projects.create(sandbox)
    made.configure(HANDED)
    return made


def shown(
    project: Project, *secret: str, said: tuple[Answer, ...] = (), theirs: frozenset[bytes] = frozenset()
) -> list[str]:
    """Where one of these secrets can be seen: in all that was said, and all that idumb keeps."""
    theirs |= {path.read_bytes() for path in (project.folder / ".planning").rglob("*-PLAN.md")}
    sinks = {f"answer {number}": f"{one.out}\n{one.err}".encode() for number, one in enumerate(said)}
    sinks |= dict(secrets.kept(project, theirs))
    return [name for name, data in sinks.items() if any(one.encode() in data for one in secret)]


def asked_of(project: Project) -> list[Answer]:
    """What every command that shows something says."""
    commands = ("show T1-01", "show T1-01 --json", "log", "status", "status --json", "next", "decisions", "dlq list",
                "check-plan 1", "debug 1 --facts-only", "envelope T1-01", "graph 1", "audit verify")  # fmt: skip
    return [project.idumb(*line.split()) for line in (*commands, "log --json --limit 100000", "metrics", "diff T1-01")]


def test_a_secret_in_a_check_is_run_and_never_shown(project: Project) -> None:
    """R-LOG-3."""
    told = f"echo {TOKEN} {VALUE} >&2; grep -q {VALUE} plain.txt || test -f a.txt"
    criteria = f"  - [ ] it accepts {VALUE} — check: `{told}`\n  - [ ] it fails — check: `false {TOKEN}`\n"
    text = task("T1-01", files="create `a.txt`", steps=[write("a.txt", "a\n")], criteria=criteria)
    project.plan([text.replace("Task T1-01", f"Use {VALUE}")])
    failed = project.execute()
    assert failed.code == 1
    evidence = [e["payload"] for e in project.events("--kind", "evidence.recorded")]
    assert [e["result"] for e in evidence[:2]] == ["passed", "failed"]
    assert "[redacted:value:" in evidence[0]["command"]
    assert "[redacted:github:" in evidence[1]["command"]
    assert shown(project, VALUE, TOKEN, said=(failed, *asked_of(project))) == []


def test_a_title_with_a_secret_is_committed_without_it_and_the_run_goes_on_after_it(project: Project) -> None:
    """R-LOG-3: what is compared later, plans and contract, is as it was."""
    first = task("T1-01", files="create `a.txt`", check=f"test -f a.txt # {VALUE}", steps=[write("a.txt", "a\n")])
    second = task("T1-02", files="create `b.txt`", check="test -f ok.log", after="T1-01", steps=[write("b.txt", "b\n")])
    plan = project.plan([first.replace("Task T1-01", f"Use {VALUE}"), second])
    assert project.execute().code == 1
    (project.folder / "ok.log").write_text("")
    resumed = project.resume("--retry-failed")
    assert resumed.code == 0, resumed.out
    assert any("Use [redacted:value:" in subject for subject in project.subjects())
    assert VALUE in plan.read_text()
    again = project.idumb("rollback", "1", "--to", "T1-01", "--yes")
    assert again.code == 0, again.err
    assert shown(project, VALUE, said=(resumed, again, *asked_of(project))) == []


def test_a_report_of_an_empty_configuration_hides_variables_by_their_names(project: Project) -> None:
    """R-LOG-3: what cannot be read names no variables, so those count whose own names do."""
    Path(project.folder, ".idumb/config.yaml").write_text("bindings: [\n")
    answer = project.idumb("show", VALUE)
    assert answer.code != 0
    assert VALUE not in answer.out + answer.err
