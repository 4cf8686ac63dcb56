"""The form that each agent host wants, and how idumb knows its own files again."""

from __future__ import annotations

from pathlib import Path

import pytest

from idumb.domain import hosts
from idumb.domain.hosts import Command
from tests.support import example_files
from tests.support.cases import every

ODD = Command(
    "odd", 'Say "this": that\'s # odd', "<phase> [x]", "Bash(idumb show:*)", "Take $ARGUMENTS\n\n- `a \\ b`\n"
)


@every("host", hosts.HOSTS)
def test_each_host_gets_the_form_of_the_file_of_its_name(host: hosts.Host) -> None:
    """Markdown with the keys that it reads, or TOML; with its own placeholder for arguments."""
    example_files.compare(Path(__file__).parent / "hosts" / f"{host.name}.txt", hosts.installed(host, ODD, "1.0"))


@every("host", hosts.HOSTS)
def test_a_file_is_recognized_until_one_of_its_bytes_changes(host: hosts.Host) -> None:
    text = hosts.installed(host, ODD, "1.0")
    assert hosts.is_unchanged(text)
    for changed in (text + "x", text.replace("Take", "Give"), text + text.splitlines(keepends=True)[-1]):
        assert not hosts.is_unchanged(changed)
        assert hosts.is_marked(changed)
    assert not hosts.is_marked(host.form(ODD))


@every("host", hosts.HOSTS)
def test_file_names_of_idumb_are_recognized_and_others_are_not(host: hosts.Host) -> None:
    assert hosts.is_named_like_ours(host, hosts.path(host, "next"))
    for other in (hosts.path(host, "next").replace("idumb-", "my-"), hosts.path(host, "next") + "~"):
        assert not hosts.is_named_like_ours(host, other)
    assert not hosts.is_named_like_ours(host, hosts.path(host, "mine/next"))


@every("text", ["no frontmatter", "---\ndescription: x\n", "---\nargument-hint: x\n---\nbody\n"])
def test_an_invalid_command_file_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"commands/x\.md"):
        hosts.read("x", text)
