"""Files that are written before there is a plan: research, and a first plan to fill in."""

from __future__ import annotations

from collections.abc import Mapping
from string import Template

from idumb.domain import wording
from idumb.views import markup


def research(fields: Mapping[str, str | None], body: str) -> str:
    """Frontmatter, and the words of whoever researched; nothing in them is hidden from who reads the page."""
    return "\n".join([*markup.frontmatter(fields), "", markup.visible(wording.as_markdown(body)).strip("\n"), ""])


def first_plan(template: str, words: Mapping[str, str]) -> str:
    """`$name` in the template: as YAML with `_yaml` behind it, as prose with `_prose`, `$phase` as it is.

    `$roadmap` is a fence, in which nothing is data.
    """
    known = {"phase": words["phase"], "roadmap": "\n".join(markup.block(words["roadmap"], "text"))}
    for name, text in words.items():
        known[f"{name}_yaml"] = markup.yaml_scalar(wording.one_line(text))
        known[f"{name}_prose"] = markup.prose(text)
    return Template(template).safe_substitute(known)
