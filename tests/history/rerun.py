"""A plan that does again what a history did, a task a step of it, executed with the real command line."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.crash import harness, rollback_user
from tests.crash.rollback_user import Entry, Files
from tests.history.histories import History
from tests.support import warm
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project

PLAN = ".planning/phases/1/01-PLAN.md"
_HEAD = '---\ntype: plan\nphase: "1"\nplan: "01"\ntitle: History\ngoal: The history, again\n---\n\n## Tasks\n\n'


def plan(history: History) -> str:
    """The text of a plan with one task for each step after the first."""
    tasks, before = [], history.steps[0][1]
    for number, (title, after) in enumerate(history.steps[1:], 1):
        tasks.append(_task(number, title, before, after))
        before = after
    return _HEAD + "\n".join(tasks)


def _task(number: int, title: str, before: Files, after: Files) -> str:
    files: dict[str, list[str]] = {}
    for path in _changed(before, after):
        verb = "create" if path not in before else "modify" if path in after else "delete"
        # Quotes around a whole path are taken off, so blanks at its ends and quotes of its own stay.
        files.setdefault(verb, []).append(f'"{path}"')
    steps = "".join(f"- {_json(step)}\n" for step in _steps(before, after))
    return (
        f"```yaml task\nid: T1-{number:02}\ntitle: {_json(title.strip() or '(no subject)')}\n"
        f"depends_on: [{f'T1-{number - 1:02}' if number > 1 else ''}]\nfiles: {_json(files) if files else 'none'}\n"
        f"acceptance: [{{text: it is there, check: 'test -d . # {number}'}}]\n```\n\n```yaml steps\n{steps}```\n"
    )


def _changed(before: Files, after: Files) -> list[str]:
    return sorted(path for path in {*before, *after} if before.get(path) != after.get(path))


def _steps(before: Files, after: Files) -> Iterator[dict[str, object]]:
    """Deletions first, so that files and folders can change places; links as a patch, which alone can say them."""
    paths = _changed(before, after)
    links = [path for path in paths if path in after and after[path][0] == "link"]
    for path in paths:
        if path in before and (path not in after or path in links):
            yield _step("delete_file", path=path)
    for path in paths:
        if path in after and path not in links:
            yield _step("write_file", path=path, **_content(after[path]))
    if links:
        yield _step("apply_patch", patch="".join(_link_patch(path, after[path]) for path in links))
    if not paths:
        yield _step("run", command="true")


def _step(tool: str, **arguments: object) -> dict[str, object]:
    return {"tool": tool, "intent": "as in the history", "arguments": arguments}


def _content(entry: Entry) -> dict[str, object]:
    _, program, data = entry
    mode = "755" if program else "644"
    try:
        return {"content": data.decode("utf-8"), "mode": mode}
    except UnicodeDecodeError:
        return {"content_base64": base64.b64encode(data).decode("ascii"), "mode": mode}


def _link_patch(path: str, entry: Entry) -> str:
    name, oid = _quoted(path), rollback_user.as_git(entry)[1]
    *lines, last = entry[1].split("\n")
    body = [*(f"+{line}\n" for line in lines), *([f"+{last}\n\\ No newline at end of file\n"] if last else [])]
    a, b = (f'"{side}/{name[1:]}' if name[0] == '"' else f"{side}/{name}" for side in "ab")
    head = f"diff --git {a} {b}\nnew file mode 120000\nindex {'0' * 40}..{oid}\n--- /dev/null\n+++ {b}"
    return f"{head}{'	' if ' ' in name else ''}\n@@ -0,0 +1,{len(body)} @@\n{''.join(body)}"


def _quoted(path: str) -> str:
    """A path as git writes it in a patch."""
    if re.fullmatch(r'[^\x00-\x1f\x7f"\\\x80-\U0010ffff]+', path):
        return path
    spelled = (chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:03o}" for b in os.fsencode(path))
    return '"' + "".join(spelled) + '"'


def _json(value: object) -> str:
    """JSON on one line that UTF-8 can hold; YAML reads it too."""
    text = json.dumps(value, ensure_ascii=False)
    return re.sub("[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]", lambda m: f"\\u{ord(m[0]):04x}", text)


@dataclass(frozen=True, slots=True)
class Rerun:
    """`repo` begins with the first step of a history, and has its plan."""

    history: History
    repo: GitSandbox

    @classmethod
    def prepare(cls, history: History, place: Path) -> Rerun:
        repo = GitSandbox.create(place)
        for path, entry in history.steps[0][1].items():
            repo.link(path, entry[1]) if entry[0] == "link" else repo.write(path, entry[2])
        repo.commit("base")
        repo.write(PLAN, plan(history))
        return cls(history, repo)

    def idumb(self, *arguments: str) -> dict[str, Any]:
        answer = warm.run(self.repo.root, *arguments, "--json")
        assert answer.code == 0, f"idumb {arguments}: {answer.code}\n{answer.out[:4000]}\n{answer.err[-4000:]}"
        return answer.object

    def execute(self) -> None:
        self.idumb("init")
        approved = self.idumb("check-plan", "1")["data"]["consent_hash"]
        self.idumb("execute-phase", "1", "--approve", approved, "--no-verify")
        self.require_at(len(self.history.steps) - 1)

    def go_back_and_forth(self, middle: int) -> None:
        """To the step at `middle`, on again, and back over both; then to the start and to the end."""
        end = len(self.history.steps) - 1
        self.idumb("rollback", "1", "--to", f"T1-{middle:02}", "--yes")
        self.require_at(middle)
        self.idumb("resume", "1", "--no-verify")
        self.require_at(end)
        for there in (middle, end):
            self.idumb(*harness.undoing(Project(self.repo, self.repo.root)))
            self.require_at(there)
        self.idumb("rollback", "1", "--to", "start", "--yes")
        self.require_at(0)
        self.idumb("resume", "1", "--no-verify")
        self.require_at(end)

    def require_at(self, number: int) -> None:
        """Branch and working tree have the files of a step; so has, at the end, the commit of each task."""
        files = self.history.steps[number][1]
        assert _changed(files, rollback_user.look(self.repo.root)) == []
        assert self.wrong("HEAD", number) == []
        assert [row for row in self.repo.status() if not row[3:].startswith((".planning/", ".idumb/"))] == []
        if number == len(self.history.steps) - 1:
            commits = self.commits()
            wrong = {f"T1-{n:02}": self.wrong(commits[f"T1-{n:02}"], n) for n in range(1, number + 1)}
            assert not any(wrong.values()), wrong

    def wrong(self, commit: str, number: int) -> list[str]:
        """The paths that a commit has otherwise than a step of the history, outside idumb's own folders."""
        step = {path: rollback_user.as_git(entry) for path, entry in self.history.steps[number][1].items()}
        tree = {path: row for path, row in self.repo.tree(commit).items() if not rollback_user.is_own(path)}
        return sorted(path for path in {*step, *tree} if step.get(path) != tree.get(path))

    def commits(self) -> dict[str, str]:
        """Task id to the newest commit that carries its trailer."""
        shown = "--format=%(trailers:key=Idumb-Task,valueonly,separator=%x20) %H"
        rows = self.repo.git("log", "--reverse", shown).splitlines()
        return dict(row.split() for row in rows if len(row.split()) == 2)
