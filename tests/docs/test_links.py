"""Links between the pages lead to a file and a heading that exist; the glossary has each term once, in order."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from tests.meta import source

PAGES = [
    *(source.ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *sorted((source.ROOT / "docs").rglob("*.md")),
]
_LINK = re.compile(r"\]\(([^()\s]+)\)")
_FENCE = re.compile(r"^(`{3,}).*?^\1`*$", re.DOTALL | re.MULTILINE)
_TERM = re.compile(r"^- ((?:\*\*[^*]+\*\*(?:, )?)+):", re.MULTILINE)


@cache
def prose(page: Path) -> str:
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


@cache
def anchors(page: Path) -> set[str]:
    """The anchors that a Markdown viewer gives the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_link_leads_to_a_file_and_a_heading() -> None:
    links = [(page, link) for page in PAGES for link in _LINK.findall(prose(page)) if "://" not in link]
    assert [f"{source.name_of(page)}: {link}" for page, link in links if not leads_somewhere(page, link)] == []
    assert len(links) > 100


def leads_somewhere(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    return target.exists() and (not anchor or anchor in anchors(target))


def test_the_glossary_has_each_term_once_and_in_order() -> None:
    page = (source.ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    terms = [re.findall(r"\*\*([^*]+)\*\*", group)[0].lower() for group in _TERM.findall(page)]
    assert len(terms) > 80
    assert terms == sorted(set(terms))
