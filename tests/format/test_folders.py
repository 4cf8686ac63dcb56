"""Phases as folders, plans as files, and what a roadmap names."""

from __future__ import annotations

from idumb.markdown import phases
from tests.support.cases import every


@every(
    "phase, folders",
    [
        ("1", ["1"]),
        ("1", ["01"]),
        ("1", ["01-name"]),
        ("01", ["1-name"]),
        ("06.1", ["06.1-urgent"]),
        ("6.1", ["06.1"]),
        ("9b", ["09b-report"]),
        ("0", ["00-ground"]),
    ],
)
def test_a_phase_is_found_under_its_usual_folder_names(phase: str, folders: list[str]) -> None:
    """R-PLAN-11, R-PLAN-1."""
    others = ["10", "11-x", "6", "1.1", "2-1", "README.md", "archive-1"]
    assert phases.matching_folders([*others, *folders], phase) == folders


@every(
    "folder, phase",
    [
        ("phase-1", "1"),
        ("phase_01", "1"),
        ("Phase 1", "01"),
        ("01.name", "1"),
        ("Phase-01-auth", "1"),
        ("PHASE1", "1"),
        ("phase-06.1-urgent", "6.1"),
        ("06.1.urgent", "06.1"),
    ],
)
def test_an_unusual_folder_name_is_accepted_if_no_usual_one_exists(folder: str, phase: str) -> None:
    """R-PLAN-11."""
    others = ["10", "phase-11", "11.x", "phases", "phase-one", "README.md", "v1"]
    assert phases.matching_folders([*others, folder], phase) == [folder]
    assert phases.matching_folders([folder, f"{phase}-usual"], phase) == [f"{phase}-usual"]
    assert set(phases.matching_folders([folder, "Phase " + phase, "x"], phase)) == {folder, "Phase " + phase}
    numbers = dict(phases.numbered([*others, folder]))
    assert folder in numbers.values()
    assert folder not in dict(phases.numbered([folder, f"{phase}-usual"])).values()


def test_two_folders_of_one_phase_are_both_named() -> None:
    assert phases.matching_folders(["01-name", "1", "2"], "1") == ["1", "01-name"]
    assert phases.matching_folders(["2"], "1") == []


def test_plan_files_are_in_natural_order() -> None:
    """R-PLAN-1."""
    names = ["10-PLAN.md", "2-PLAN.md", "01-02-PLAN.md", "PLAN.md", "01-SUMMARY.md", "plan.md", ".x-PLAN.md"]
    assert phases.plan_files(names) == ["PLAN.md", "01-02-PLAN.md", "2-PLAN.md", "10-PLAN.md"]


ROADMAP = """# Roadmap

## Phases

- [x] **Phase 1: Ground** - what it rests on
- [ ] Phase 2: Walls — and windows

### Phase 06.1: Urgent repair

Phase 9 is only mentioned.

| Phase | State |
|-------|-------|
| 3. Roof | open |
| 4 | Garden |

## Phase 1: Ground

```
## Phase 8: an example
```
"""


def test_a_roadmap_names_phases_in_lists_headings_and_tables() -> None:
    """R-PLAN-11."""
    assert [(p.number, p.title, p.line) for p in phases.roadmap_phases(ROADMAP)] == [
        ("1", "Ground", 5),
        ("2", "Walls", 6),
        ("06.1", "Urgent repair", 8),
        ("3", "Roof", 14),
        ("4", "Garden", 15),
    ]


def test_a_roadmap_of_any_shape_is_not_an_error() -> None:
    assert phases.roadmap_phases("") == ()
    assert phases.roadmap_phases("nothing\n\n| a |\n") == ()
