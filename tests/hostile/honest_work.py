"""T21: builders that do their work in small projects of many kinds, and whether idumb wrongly refuses them.

Each project runs in a guided phase and in an approved strict one, without a person. Each task must be completed, and
its check must pass in a fresh clone too, unless the project needs a file that no commit holds.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from tests.crash.programme import Programme, Tally
from tests.hostile.cheating import SANDBOX, environment, make_homes, search_path
from tests.hostile.honest import HONEST, Honest
from tests.support import project as projects
from tests.support import warm
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, task

MODES = ("guided", "strict")
_STRICT = "mode: strict\nrequirements: {REQ-1: it works}\nnon_goals: [{id: N-1, text: nothing else}]\n"
_FIELDS = "- **Requirements:** REQ-1\n- **Change:** {}\n"


class Case(NamedTuple):
    honest: Honest
    mode: str


def run(size: int | None, seed: int, folder: Path, tally: Tally) -> None:
    """`size` is the number of cases; None is every project in every mode."""
    cases = [Case(honest, mode) for mode in MODES for honest in HONEST]
    if SANDBOX:  # it needs one more choice in strict mode, and protects git's index
        cases = [c for c in cases if c.mode == "guided" and "git mv" not in c.honest.works[0].script]
    if size is not None:
        cheap = [case for case in cases if not case.honest.tools and "pytest" not in case.honest.works[0].check]
        cases = random.Random(seed).sample(cheap, size)
    for number, case in enumerate(tally.share(cases)):
        path = search_path(Path(os.devnull))
        if missing := [tool for tool in case.honest.tools if shutil.which(tool, path=path) is None]:
            tally.note(f"skipped without {' '.join(missing)}")
        else:
            judge(case.honest, case.mode, folder / f"{tally.part}-{number}", tally)
    if tally.part == 0:
        tally.note("languages", len({honest.language for honest in HONEST}))


def judge(honest: Honest, mode: str, folder: Path, tally: Tally) -> None:
    with tally.case(f"{honest.language}: {honest.name} ({mode})"):
        project, surroundings = _project(honest, mode, folder)
        answer = _execute(project, surroundings)
        if honest.needs:
            assert honest.needs in answer.out, f"nothing names {honest.needs}: {_short(answer)}"
            _provide(project, honest.needs)
            answer = _execute(project, surroundings)
        assert answer.code == 0, f"honest work was refused: {_short(answer)}"
        statuses = [row["status"] for row in json.loads(answer.out)["data"]["tasks"]]
        assert statuses == ["completed"] * len(honest.works), f"honest work was refused: {_short(answer)}"
        tally.note(f"completed: {honest.language}")
        shutil.rmtree(folder)


def _short(answer: Answer) -> str:
    body: dict[str, Any] = json.loads(answer.out)
    tasks = [(row["status"], row.get("reason")) for row in (body["data"] or {}).get("tasks", ())]
    error = body["error"] or {}
    return f"exit {answer.code}: {tasks} {error.get('message')} {error.get('hint')}"


def _execute(project: Project, surroundings: dict[str, str]) -> Answer:
    """Approve what is open, then run the phase; the answer of the first command that refuses."""
    checked = _idumb(project, surroundings, "check-plan", "1", "--json")
    if checked.code != 0:
        return checked
    data = json.loads(checked.out)["data"]
    if data["mode"] == "strict":
        questions = ",".join(str(one["id"]) for one in data["open_questions"])
        answers = ("--answer", f"{questions}=yes") if questions else ()
        approved = _idumb(project, surroundings, "approve", "1", *answers, "--hash", data["contract_hash"], "--json")
        return approved if approved.code else _idumb(project, surroundings, "execute-phase", "1", "--json")
    return _idumb(project, surroundings, "execute-phase", "1", "--approve", data["consent_hash"], "--json")


def _provide(project: Project, line: str) -> None:
    """Do as the user whom the message asks: add the line to the configuration."""
    settings = project.folder / ".idumb" / "config.yaml"
    project.configure(f"{settings.read_text(encoding='utf-8')}{line}\n")


def _idumb(project: Project, surroundings: dict[str, str], *arguments: str) -> Answer:
    return warm.run(project.folder, *arguments, environment=surroundings)


def _project(honest: Honest, mode: str, folder: Path) -> tuple[Project, dict[str, str]]:
    make_homes(folder)
    surroundings = environment(folder)
    project = projects.create(GitSandbox.create(folder / "inner" / "repo"), files=honest.files)
    if honest.before:
        prepared = subprocess.run(
            ["sh", "-c", honest.before],
            cwd=project.folder,
            env=surroundings,
            check=False,
            capture_output=True,
            text=True,
        )
        assert prepared.returncode == 0, f"the project cannot be prepared: {prepared.stderr}"
    if honest.linked:
        root = folder / "inner" / "linked"
        project.repo.git("worktree", "add", "--quiet", "-b", "linked", str(root))
        project = Project(GitSandbox(root, project.repo.environment), root)
    ids = [f"T1-{number:02}" for number in range(1, len(honest.works) + 1)]
    builder = folder / "builder.sh"
    cases = "".join(f"{id})\n{work.script}\n;;\n" for id, work in zip(ids, honest.works, strict=True))
    builder.write_text(f'set -e\ncase "$IDUMB_TASK" in\n{cases}esac\n', encoding="utf-8")
    argv = json.dumps(["/bin/sh", str(builder)])
    sandbox = f"sandbox: {SANDBOX}\n" if SANDBOX else ""
    project.configure(
        f"builder: b\nbindings:\n  b: {{adapter: command, argv: {argv}}}\n{honest.configuration}{sandbox}"
    )
    strict = mode == "strict"
    tasks = [
        task(
            id,
            files=", ".join(f"{entry.split('`')[0]}`{entry.split('`')[1]}`" for entry in work.files.split(", ")),
            check=work.check,
            after=after,
            fields=_FIELDS.format(work.change) if strict else "",
        )
        for id, work, after in zip(ids, honest.works, ["none", *ids], strict=False)
    ]
    last = json.dumps(honest.works[-1].check)
    head = f"{_STRICT}success_criteria: [{{text: it works, check: {last}}}]\n" if strict else ""
    project.plan(tasks, head=head)
    return project, surroundings


PROGRAMME = Programme(
    "T21", "honest work in projects of many kinds", sample=3, release=None, run=run, divides=True, push=1
)
