"""Configuration and policy examples of the pages are valid."""

from __future__ import annotations

import re
from pathlib import Path

from idumb.markdown import configuration, single_settings
from tests.meta import source

ELSEWHERE = {"findings.md", "step-plans.md"}
"""Pages whose examples are plans, and are tested as such."""
PAGES = [source.ROOT / "README.md", *sorted(p for p in (source.ROOT / "docs").glob("*.md") if p.name not in ELSEWHERE)]
_EXAMPLE = re.compile(r"^```yaml\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
_POLICY = re.compile(r"^(allow|deny):", re.MULTILINE)


def examples() -> list[tuple[str, str]]:
    """(page and line, text) of every example."""
    return [
        (f"{page.name}:{text.count(chr(10), 0, example.start()) + 1}", example["text"])
        for page in PAGES
        for text in (page.read_text(encoding="utf-8"),)
        for example in _EXAMPLE.finditer(text)
    ]


def test_every_example_of_a_page_can_be_copied_unchanged() -> None:
    """R-OPS-4."""
    for place, text in examples():
        of_user = single_settings.read_user_file if text.startswith("notify:") else configuration.read
        read = configuration.read_policy if _POLICY.search(text) else of_user
        settings, findings = read(text.encode(), place)
        assert findings == (), place
        assert settings is not None, place
    shown = {Path(place.partition(":")[0]).stem for place, _ in examples()}
    assert shown >= {"README", "agents", "configuration", "editor", "planning"}
