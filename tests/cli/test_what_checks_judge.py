"""The table of `docs/what-proof-means.md`: what checks judge for each way to commit. R-RUN-3."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from tests.support import project as projects
from tests.support import seed
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.project import task


@dataclass(frozen=True, slots=True)
class Way:
    """One column: `heads` are the subjects of HEAD in the checks of two tasks; `hooks` may change the work."""

    settings: str
    heads: tuple[str, str] = ("plan", "Task T1-01")
    hooks: bool = True
    commits: int = 2


WAYS = {
    "`task`": Way(""),
    "`none`": Way("git: {commit: none}\n", ("plan", "plan"), hooks=False, commits=0),
}
SEES = (
    "git show -s --format=%s HEAD; git diff --cached --quiet HEAD && echo clean;"
    " test -e ignored.log && echo ignored; grep -q mine README.md && echo uncommitted; cat *.txt"
)
HOOK = "#!/bin/sh\nfor f in $(git diff --cached --name-only -- '*.txt'); do echo hooked >> $f; git add $f; done\n"


@pytest.mark.nightly
@pytest.mark.parametrize("name", seed.one_on_a_push([*WAYS], "what checks judge"))
def test_what_checks_judge(sandbox: GitSandbox, name: str) -> None:
    way = WAYS[name]
    project = projects.create(sandbox, files={"README.md": "one\n", ".gitignore": "*.log\n"})
    script = project.folder.parent / "builder.sh"
    script.write_text("if test -e a.txt; then echo built > b.txt; else echo built > a.txt; fi\n")
    binding = f"bindings:\n  b: {{adapter: command, argv: [sh, {json.dumps(str(script))}]}}\n"
    project.plan(
        [
            task("T1-01", files="create `a.txt`", check=f"{SEES} && test -s a.txt"),
            task("T1-02", files="create `b.txt`", check=f"{SEES} && test -s b.txt", after="T1-01"),
        ]
    )
    project.configure(f"builder: b\n{way.settings}{binding}")
    sandbox.write(".git/hooks/pre-commit", HOOK, mode=0o755)
    sandbox.write_all({"ignored.log": "x\n", "README.md": "mine\n"})
    before = len(project.subjects())
    answer = run(project)
    assert answer.data["outcome"] == "complete", answer
    made = [subject for subject in project.subjects()[before:] if not subject.startswith("Phase 1: reports")]
    assert len(made) == way.commits
    for number, head in zip(("1", "2"), way.heads, strict=True):
        rows = [row["payload"] for row in project.events("--task", f"T1-0{number}", "--kind", "evidence.recorded")]
        assert {row["result"] for row in rows} == {"passed"}
        assert [row.get("weaker") for row in rows] == [None] * len(rows)
        saw = rows[0]["output"].splitlines()
        assert saw[0] == head
        assert not {"clean", "ignored", "uncommitted"} & set(saw)
        assert saw.count("built") == int(number)  # its work, and that of the finished tasks
        assert ("hooked" in rows[-1]["output"]) == way.hooks, rows  # proven once more, as committed
    for arguments in ((), ("T1-02",)):
        proven = project.quick("prove", "1", *arguments, "--json")
        assert {row["result"] for row in proven.data["tasks"]} == {"proven"}, proven
        assert any("no commit" in words for words in proven.object["warnings"]) == (way.commits == 0), proven
