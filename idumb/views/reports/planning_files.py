"""Render the files that precede a plan: research, and a first plan to fill in."""

from __future__ import annotations

from collections.abc import Mapping
from string import Template

from idumb.domain import wording
from idumb.views import markup


def research(fields: Mapping[str, str | None], body: str) -> str:
    """Return a research file: frontmatter, and the body with invisible characters escaped."""
    return "\n".join([*markup.frontmatter(fields), "", markup.visible(wording.as_markdown(body)).strip("\n"), ""])


def first_plan(template: str, words: Mapping[str, str]) -> str:
    """Fill the template: `$name_yaml` is a YAML scalar, `$name_prose` Markdown prose, `$roadmap` a fenced block."""
    fields = {"phase": words["phase"], "roadmap": "\n".join(markup.block(words["roadmap"], "text"))}
    for name, text in words.items():
        fields[f"{name}_yaml"] = markup.yaml_scalar(wording.one_line(text))
        fields[f"{name}_prose"] = markup.prose(text)
    return Template(template).safe_substitute(fields)
