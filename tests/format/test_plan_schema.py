"""The JSON Schema of the front matter and the snippets for editors, against the parser that decides."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema

from idumb.markdown.plans import frontmatter, plan_parser
from idumb.markdown.syntax import tree, value_types
from idumb.markdown.syntax.inline import Text
from idumb.markdown.syntax.source import Source
from idumb.system import shipped
from tests.format import golden
from tests.support.cases import every

HEAD = {"type": "plan", "phase": "1", "plan": "01", "title": "T", "goal": "G"}
TASK = "\n\n## Tasks\n\n### T1-01: A\n\n- **Acceptance:**\n  - [ ] It is there — check: `true`\n"
SCHEMA = frontmatter.schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def front_matter(data: bytes) -> Any:
    """The value that an editor sees: YAML's core schema."""
    source = Source(data.decode(), "01-PLAN.md")
    end = next(n for n, line in enumerate(source.lines[1:], 1) if line.rstrip() == "---")
    text = "".join(f"{line}\n" for line in source.lines[1:end])
    node = tree.read(Text(text), source, "frontmatter")
    assert node is not None
    return value_types.anything(node)


def errors(data: bytes) -> list[str]:
    return [error.message for error in VALIDATOR.iter_errors(front_matter(data))]


def parses(text: str) -> list[str]:
    return [finding.code for finding in plan_parser.parse(text.encode(), "01-PLAN.md").findings]


def test_the_schema_accepts_every_valid_plan() -> None:
    """R-PLAN-10."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    wrong = {name: errors(golden.data(name)) for name in golden.NAMES if golden.parsed(name).plan}
    assert len(wrong) > 100
    assert {name: messages for name, messages in wrong.items() if messages} == {}


# fmt: off
REFUSED: list[dict[str, Any]] = [
    {"type": "note"}, {"phase": "a b"}, {"plan": "-1"}, {"title": " "}, {"goal": []}, {"mode": "loose"}, {"goals": "x"},
    {"version": "1 2"}, {"requirements": {"a b": "x"}}, {"requirements": "REQ-1"}, {"scope": {"rot": "src"}},
    {"non_goals": [{"id": "N"}]}, {"invariants": [{"id": "I", "text": "x"}]}, {"setup": [{"service": "s"}]},
    {"success_criteria": [{"check": "true"}]}, {"success_criteria": [{"text": "x", "check": "true", "human": True}]},
    {"success_criteria": [{"text": "x", "keeps": "true"}]}, {"limits": {"files": "many"}}, {"builder": "a b"},
    {"assumptions": "x"},
]
# fmt: on


@every("wrong", REFUSED)
def test_the_schema_refuses_what_the_parser_refuses(wrong: dict[str, Any]) -> None:
    """R-PLAN-10."""
    text = "---\n" + "".join(f"{key}: {json.dumps(value)}\n" for key, value in {**HEAD, **wrong}.items()) + "---" + TASK
    assert errors(text.encode()) != []
    assert parses(text) != []


def expanded(lines: list[str]) -> str:
    """The text that VS Code inserts if you accept every default and first choice."""
    text = "\n".join(lines)
    defaults: dict[str, str] = {"0": ""}

    def default(match: re.Match[str]) -> str:
        number, value, choices = match.groups()
        first = re.split(r"(?<!\\),", choices)[0].replace("\\,", ",") if choices else value
        defaults[number] = first
        return first

    text = re.sub(r"\$\{(\d+)(?::([^}]*)|\|([^}]*)\|)\}", default, text)
    return re.sub(r"\$\{?(\d+)\}?", lambda match: defaults[match[1]], text)


def placed(name: str, text: str) -> str:
    """A plan with the snippet where it belongs."""
    if text.startswith("---"):
        return text
    head = "---\n" + "".join(f"{key}: {json.dumps(value)}\n" for key, value in HEAD.items())
    whole = head + "requirements: {REQ-1: x}\n---" + TASK
    if name.startswith("idumb task"):
        return f"{whole}\n{text}\n"
    if name == "idumb steps":
        return f"{whole}- **Files:** create `greeting.txt`\n\n{text}\n"
    indented = "".join(f"  {line}\n" for line in text.splitlines())
    return whole + (text + "\n" if text.startswith("- **") else indented)


@every("name", shipped.snippets())
def test_each_snippet_gives_a_plan_that_parses(name: str) -> None:
    """R-PLAN-10."""
    snippet = shipped.snippets()[name]
    assert snippet["scope"] == "markdown"
    text = placed(name, expanded(snippet["body"]))
    assert parses(text) == [], text
    assert expanded(snippet["body"]).strip().splitlines()[0] in text
