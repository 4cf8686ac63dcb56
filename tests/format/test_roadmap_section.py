"""What a roadmap says of one phase, and how one is put at its end."""

from __future__ import annotations

import pytest

from idumb.markdown import roadmap

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


@pytest.mark.parametrize(
    ("phase", "said"),
    [
        ("1", "### Phase 1: Ground\n\nDig.\n\n```\n### Phase 9: in a fence\n```\n\n#### How\n\nDeep."),
        ("01", "### Phase 1: Ground\n\nDig.\n\n```\n### Phase 9: in a fence\n```\n\n#### How\n\nDeep."),
        ("2", "### Phase 02: Windows\n\nLook out."),
        ("3", "- [ ] Phase 3: Roof"),
        ("9", ""),
    ],
)
def test_a_section_is_the_heading_with_all_below_or_the_item(phase: str, said: str) -> None:
    """R-ADAPT-4."""
    assert roadmap.section(TEXT, phase) == said


def test_an_item_has_its_indented_lines() -> None:
    text = TEXT.partition("## Details")[0]
    assert roadmap.section(text, "2") == "- [ ] **Phase 2: Walls**\n  of stone"


@pytest.mark.parametrize("text", [TEXT, TEXT.rstrip("\n"), TEXT.replace("\n", "\r\n"), "# Roadmap\n", ""])
def test_a_phase_is_put_at_the_end_and_read_again(text: str) -> None:
    """R-PLAN-11."""
    found = roadmap.with_phase(text, "10", "A garden", "Something grows")
    assert found.startswith(text)
    assert roadmap.read(found)[-1].title == "A garden"
    assert roadmap.section(found, "10").endswith("Something grows")
