"""Phases as folders, plans as files, and what a roadmap names, says and gets."""

from __future__ import annotations

from pathlib import Path

from idumb.markdown import phases
from tests.format import golden
from tests.support import example_files
from tests.support.cases import every

ROADMAPS = golden.CASES / "roadmaps"


def roadmap(name: str) -> str:
    return (ROADMAPS / f"{name}.md").read_bytes().decode()


TEXT, LIST = roadmap("details"), roadmap("numbered")


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


@every("place", sorted(ROADMAPS.glob("*.json")))
def test_a_roadmap_names_phases_in_lists_headings_and_tables(place: Path) -> None:
    """R-PLAN-11, R-ADAPT-4: with the titles that a reader sees; a section is a heading with all below, or an item."""
    text, numbers = roadmap(place.stem), example_files.read_json(place)["sections"]
    named = [[each.number, each.title, each.line] for each in phases.roadmap_phases(text)]
    sections = {number: phases.roadmap_section(text, number) for number in numbers}
    example_files.compare_json(place, {"phases": named, "sections": sections})


def test_plan_files_are_in_natural_order() -> None:
    """R-PLAN-1."""
    names = ["10-PLAN.md", "2-PLAN.md", "01-02-PLAN.md", "PLAN.md", "01-SUMMARY.md", "plan.md", ".x-PLAN.md"]
    assert phases.plan_files(names) == ["PLAN.md", "01-02-PLAN.md", "2-PLAN.md", "10-PLAN.md"]


@every("text", [TEXT, TEXT.rstrip("\n"), TEXT.replace("\n", "\r\n"), "# Roadmap\n", ""])
def test_a_phase_is_appended_and_read_back(text: str) -> None:
    """R-PLAN-11."""
    extended = phases.with_phase(text, "10", "A garden", "Something grows")
    assert extended.startswith(text)
    assert phases.roadmap_phases(extended)[-1].title == "A garden"
    assert phases.roadmap_section(extended, "10").endswith("Something grows")


@every("end, text", [("\n", TEXT), ("\r\n", TEXT.replace("\n", "\r\n"))])
def test_a_phase_is_inserted_after_another_heading_and_its_earlier_insertions(end: str, text: str) -> None:
    """R-PLAN-11."""
    once = phases.with_phase(text, "01.1", "Ditch", "It holds", "1")
    twice = phases.with_phase(once, "01.2", "Drain", "", "1")
    expected = end.join(["Deep.", "", "### Phase 01.1: Ditch", "", "It holds", "", "### Phase 01.2: Drain", "", ""])
    assert expected + "### Phase 02: Windows" in twice
    assert twice.replace(expected.removeprefix(f"Deep.{end}{end}"), "") == text
    last = phases.with_phase(text, "02.1", "Glass", "", "2")
    assert last == f"{text}{end}### Phase 02.1: Glass{end}"


def test_a_phase_is_inserted_between_lines_that_keep_their_ends() -> None:
    underlined = roadmap("underlined")
    more = phases.with_phase(underlined, "1.1", "New", "", "1")
    assert more == underlined.replace("Phase 2", "## Phase 1.1: New\n\nPhase 2")
    text = "# Roadmap\n\n## Phase 1: Ground\r\n\r\nDig.\n\n## Phase 2: Walls\n"
    more = phases.with_phase(text, "1.1", "Ditch", "", "1")
    assert more == text.replace("## Phase 2", "## Phase 1.1: Ditch\r\n\r\n## Phase 2")
    tight = "# Roadmap\n## Phase 1: Ground\nDig.\n## Phase 2: Walls\n"
    more = phases.with_phase(tight, "1.1", "Ditch", "", "1")
    assert more == tight.replace("## Phase 2", "\n## Phase 1.1: Ditch\n\n## Phase 2")


def test_a_phase_is_inserted_after_the_item_if_there_is_no_heading() -> None:
    """R-PLAN-11."""
    once = phases.with_phase(LIST, "02.1", "Windows", "Light comes in", "2")
    item = "2. [ ] **Phase 02.1: Windows** - Light comes in\n"
    assert once == LIST.replace("   of stone\n", f"   of stone\n{item}")
    assert [p.number for p in phases.roadmap_phases(once)] == ["1", "2", "02.1", "3"]
    table = "# Roadmap\n\n| 1. Roof | open |\n|---|---|\n"
    assert phases.with_phase(table, "01.1", "A", "", "1") == f"{table}\n## Phase 01.1: A\n"
