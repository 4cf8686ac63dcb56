"""The section of one phase in a roadmap, and appending a phase."""

from __future__ import annotations

from idumb.markdown import phases
from tests.support.cases import every

TEXT = """# Roadmap

- [ ] **Phase 1: Ground** - the base
- [ ] **Phase 2: Walls**
  of stone

  and wood
- [ ] Phase 3: Roof

## Details

### Phase 1: Ground

Dig.

```
### Phase 9: in a fence
```

#### How

Deep.

### Phase 02: Windows

Look out.
"""


@every(
    "phase, section",
    [
        ("1", "### Phase 1: Ground\n\nDig.\n\n```\n### Phase 9: in a fence\n```\n\n#### How\n\nDeep."),
        ("01", "### Phase 1: Ground\n\nDig.\n\n```\n### Phase 9: in a fence\n```\n\n#### How\n\nDeep."),
        ("2", "### Phase 02: Windows\n\nLook out."),
        ("3", "- [ ] Phase 3: Roof"),
        ("9", ""),
    ],
)
def test_a_section_is_the_heading_with_everything_below_or_the_item(phase: str, section: str) -> None:
    """R-ADAPT-4."""
    assert phases.roadmap_section(TEXT, phase) == section


def test_an_item_includes_its_indented_lines() -> None:
    text = TEXT.partition("## Details")[0]
    assert phases.roadmap_section(text, "2") == "- [ ] **Phase 2: Walls**\n  of stone"


@every("text", [TEXT, TEXT.rstrip("\n"), TEXT.replace("\n", "\r\n"), "# Roadmap\n", ""])
def test_a_phase_is_appended_and_read_back(text: str) -> None:
    """R-PLAN-11."""
    extended = phases.with_phase(text, "10", "A garden", "Something grows")
    assert extended.startswith(text)
    assert phases.roadmap_phases(extended)[-1].title == "A garden"
    assert phases.roadmap_section(extended, "10").endswith("Something grows")


LIST = """# Roadmap

1. [x] **Phase 1: Ground** - base
2. [ ] **Phase 2: Walls**
   of stone
3. [ ] Phase 3: Roof
"""


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


def test_a_phase_is_inserted_after_the_item_if_there_is_no_heading() -> None:
    """R-PLAN-11."""
    once = phases.with_phase(LIST, "02.1", "Windows", "Light comes in", "2")
    item = "2. [ ] **Phase 02.1: Windows** - Light comes in\n"
    assert once == LIST.replace("   of stone\n", f"   of stone\n{item}")
    assert [p.number for p in phases.roadmap_phases(once)] == ["1", "2", "02.1", "3"]
    table = "# Roadmap\n\n| 1. Roof | open |\n|---|---|\n"
    assert phases.with_phase(table, "01.1", "A", "", "1") == f"{table}\n## Phase 01.1: A\n"
