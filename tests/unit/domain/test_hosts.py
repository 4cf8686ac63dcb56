"""The form that each agent host wants, and how idumb knows its own files again."""

from __future__ import annotations

import tomllib

import pytest
import yaml

from idumb.domain import hosts
from idumb.domain.hosts import BY_NAME, Command
from tests.support.cases import every

ODD = Command(
    "odd", 'Say "this": that\'s # odd', "<phase> [x]", "Bash(idumb show:*)", "Take $ARGUMENTS\n\n- `a \\ b`\n"
)


def frontmatter(text: str) -> dict[str, str]:
    fields = yaml.safe_load(text.split("---\n")[1])
    assert isinstance(fields, dict)
    return fields


@every(
    "name, keys, arguments",
    [
        ("claude", {"description", "argument-hint", "allowed-tools"}, "Take $ARGUMENTS"),
        ("opencode", {"description"}, "Take $ARGUMENTS"),
        ("qwen", {"description", "argument-hint"}, "Take {{args}}"),
        ("copilot", {"description", "argument-hint", "agent"}, "Take what the user wrote"),
        ("windsurf", {"description"}, "Take what the user wrote"),
        ("codex", {"name", "description"}, "Take what the user wrote"),
    ],
)
def test_markdown_has_the_keys_that_the_host_reads(name: str, keys: set[str], arguments: str) -> None:
    text = hosts.installed(BY_NAME[name], ODD, "1.0")
    assert set(frontmatter(text)) == keys
    assert ODD.description in frontmatter(text)["description"]
    assert arguments in text


def test_a_host_without_frontmatter_gets_none() -> None:
    assert hosts.installed(BY_NAME["cursor"], ODD, "1.0").startswith("Take what the user wrote")


def test_gemini_gets_toml_with_its_own_placeholder_for_arguments() -> None:
    command = tomllib.loads(hosts.installed(BY_NAME["gemini"], ODD, "1.0"))
    assert command == {"description": ODD.description, "prompt": "Take {{args}}\n\n- `a \\ b`\n"}


@every("host", hosts.HOSTS)
def test_a_file_is_recognized_until_one_of_its_bytes_changes(host: hosts.Host) -> None:
    text = hosts.installed(host, ODD, "1.0")
    assert hosts.version_of(text) == "1.0"
    for changed in (text + "x", text.replace("Take", "Give"), text + text.splitlines(keepends=True)[-1]):
        assert hosts.version_of(changed) is None
        assert hosts.is_marked(changed)
    assert not hosts.is_marked(host.form(ODD))


@every("host", hosts.HOSTS)
def test_file_names_of_idumb_are_recognized_and_others_are_not(host: hosts.Host) -> None:
    assert hosts.is_named_like_ours(host, hosts.path(host, "next"))
    assert not hosts.is_named_like_ours(host, hosts.path(host, "next").replace("idumb-", "my-"))


@every("text", ["no frontmatter", "---\ndescription: x\n", "---\nargument-hint: x\n---\nbody\n"])
def test_an_invalid_command_file_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"commands/x\.md"):
        hosts.read("x", text)
