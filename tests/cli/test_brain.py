"""Everything in `.idumb/brain` is made from the event log alone, byte for byte (R-LOG-4, R-LOG-9)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making, task, write

STATE = ".idumb/brain/state.json"
EXECUTION = ".idumb/brain/execution/1"
NOTES = ".idumb/brain/notes.md"


def brain(project: Project) -> dict[str, bytes]:
    """Every file below `.idumb/brain` with its bytes."""
    folder = project.folder / ".idumb/brain"
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def forget(project: Project, *keep: str) -> None:
    """Remove all of `.idumb/brain` but what idumb did not make there."""
    kept = {name: project.read(name) for name in (".idumb/brain/README.md", *keep)}
    shutil.rmtree(project.folder / ".idumb/brain")
    for name, text in kept.items():
        project.repo.write(name, text)


def fixed(project: Project) -> list[str]:
    answer = project.json("doctor", "--fix")
    check = next(check for check in answer.data["checks"] if check["code"] == "projections.true")
    assert [one for one in check["symptoms"] if one["state"] != "ok"] == []
    return list(answer.data["mended"])


def state(project: Project) -> dict[str, Any]:
    return dict(json.loads(project.read(STATE)))


def history(project: Project) -> list[tuple[str, str]]:
    return [(line["action"], line["result"]) for line in state(project)["history"]]


def eventful(sandbox: GitSandbox) -> Project:
    """Two phases with three runs: one failed and was accepted, one was rolled back and went on, one was forced."""
    project = projects.create(sandbox)
    wrong = task("T1-02", files="create `b.txt`", check="false", steps=[write("b.txt", "b\n")])
    handed = making("T1-01", "a.txt", fields="- **Handoff to:** human\n")
    project.plan([handed, wrong])
    project.plan([making("T2-01", "c.txt"), making("T2-02", "d.txt", after="T2-01")], phase="2")
    assert project.execute().code == 1
    assert project.json("accept", "T1-02", "--why", "so").code == 0
    assert project.resume().code == 0
    assert project.execute(phase="2").code == 0
    assert project.json("rollback", "2", "--to", "T2-01", "--yes").code == 0
    assert project.resume(phase="2").code == 0
    return project


def test_all_of_it_is_rebuilt_byte_for_byte(sandbox: GitSandbox) -> None:
    """R-LOG-4: history, timestamps and documents are those that were there."""
    project = eventful(sandbox)
    before = brain(project)
    assert history(project) == [("execute-phase:1", "pass"), ("execute-phase:2", "pass")]
    assert sorted(name.split("/")[0] for name in before) == ["README.md", *["execution"] * 6, "handoffs", "state.json"]
    assert fixed(project) == []
    forget(project)
    assert fixed(project)
    assert brain(project) == before
    assert fixed(project) == []


def test_it_is_rebuilt_after_older_events_went_to_the_archive_and_under_another_plan(sandbox: GitSandbox) -> None:
    """R-LOG-4: earlier runs of a phase keep their lines; the locked plans are in the git folder."""
    project = projects.create(sandbox)
    for number in (1, 2, 3):
        project.plan([making("T1-01", "a.txt", f"{number}\n")])
        if number > 1:
            assert project.json("rollback", "1", "--to", "start", "--yes").code == 0
        assert project.execute().code == 0
    assert [line["run"] for line in state(project)["history"]] == list(
        dict.fromkeys(e["run"] for e in project.events("--kind", "run.started"))
    )
    assert project.json("archive", "--keep-runs", "1").data["moved"] > 0
    before = brain(project)
    (project.folder / ".planning/phases/1/01-PLAN.md").write_text("# Nothing yet\n", encoding="utf-8")
    forget(project)
    fixed(project)
    assert brain(project) == before


def test_what_an_older_state_file_holds_is_recorded_before_it_is_replaced(sandbox: GitSandbox) -> None:
    """R-LOG-9: lines of runs that this log does not know, keys of other tools, and when it began."""
    project = projects.create(sandbox)
    project.plan([making("T1-01", "a.txt")])
    old = {"initialized": "2025-01-01", "mine": {"a": 1}, "validationCount": 2, "anchors": [{"id": "x"}]}
    lines = [{"timestamp": "t", "action": "execute-phase:7", "agent": "idumb", "result": "pass", "run": "0123"}]
    project.repo.write(STATE, json.dumps({**old, "history": lines}))
    assert project.execute().code == 0
    known = state(project)
    assert {key: known[key] for key in ("initialized", "mine", "anchors")} == {
        k: old[k] for k in old if k != "validationCount"
    }
    assert (known["validationCount"], known["history"][0]) == (3, lines[0])
    (told,) = project.events("--kind", "legacy.imported")
    assert Path(told["payload"]["files"][0]["kept"]).is_file()
    assert project.json("init").data["taken_over"] is None
    before = brain(project)
    forget(project)
    fixed(project)
    assert brain(project) == before


def test_doctor_records_it_too_where_it_rebuilds_the_file(sandbox: GitSandbox) -> None:
    """R-LOG-9."""
    project = projects.create(sandbox)
    project.plan([making("T1-01", "a.txt")])
    assert project.execute().code == 0
    project.repo.write(STATE, json.dumps({**state(project), "mine": 7}))
    symptom = next(c for c in project.json("doctor").data["checks"] if c["code"] == "projections.true")["symptoms"][0]
    assert (symptom["path"], symptom["mends"]) == (STATE, True)
    fixed(project)
    assert state(project)["mine"] == 7
    assert fixed(project) == []


def test_files_that_idumb_did_not_make_are_left_or_kept(sandbox: GitSandbox) -> None:
    """R-LOG-9: also where a file of idumb's needs the place of one."""
    project = projects.create(sandbox)
    project.plan([making("T1-01", "a.txt")])
    theirs = "---\nid: checkpoint-T1-01\ntask_id: T1-01\nstatus: failed\n---\n\n# Mine\n"
    project.repo.write(NOTES, "mine\n")
    project.repo.write(f"{EXECUTION}/checkpoint-T1-01.md", theirs)
    project.commit_own()
    assert project.execute().code == 0
    assert project.read(NOTES) == "mine\n"
    kept = [path.read_text() for path in (project.repo.common_dir / "idumb/set-aside").rglob("*") if path.is_file()]
    assert kept == [theirs]
    before = brain(project)
    forget(project, NOTES)
    fixed(project)
    assert brain(project) == before
