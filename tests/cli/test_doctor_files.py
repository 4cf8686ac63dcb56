"""`idumb doctor` checks configuration and projections, and rebuilds projections (R-LOG-6)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import doctor as doctors
from tests.support import seed
from tests.support.doctor import doctor, fixed, symptoms_of
from tests.support.prepared import prepared_project
from tests.support.project import Project

project = prepared_project(doctors.create)


PROGRESS = ".idumb/brain/execution/1/progress.json"
CHECKPOINT = ".idumb/brain/execution/1/checkpoint-T1-01.md"
STATE = ".idumb/brain/state.json"
CONFLICT = b"<<<<<<< ours\n{}\n=======\n{ }\n>>>>>>> theirs\n"


@pytest.mark.parametrize(
    "damages",
    seed.one_on_a_push(
        [((None, CONFLICT, b"[" * 4000),), ((b"[" * 4000, b"\xff", b""),), ((b"\xff", None, b"{"),)],
        "damaged projections",
    ),
)
def test_lost_and_damaged_projections_are_rebuilt(project: Project, damages: tuple[bytes | None, ...]) -> None:
    """F44: they are rebuilt from the log, and the previous files are backed up."""
    paths = (PROGRESS, CHECKPOINT, STATE)
    before = {path: project.read(path) for path in paths}
    for path, damage in zip(paths, damages, strict=True):
        (project.folder / path).unlink()
        if damage is not None:
            project.repo.write(path, damage)
    assert {one["path"] for one in symptoms_of(project, "projections.true", "warn")} == set(paths)
    lines = fixed(project, "projections.true")
    kept = [Path(line.rpartition(" ")[2]) for line in lines]
    assert {place.read_bytes() for place in kept if place.is_file()} >= {damage for damage in damages if damage}
    assert doctor(project, "--fix").data["fixed"] == []
    assert json.loads(project.read(PROGRESS))["completed"] == ["T1-01", "T1-02"]
    assert project.read(CHECKPOINT) == before[CHECKPOINT]
    assert json.loads(project.read(STATE))["history"][0]["run"] == json.loads(before[STATE])["history"][0]["run"]
