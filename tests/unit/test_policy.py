"""Policies of tools: what their files may say, and that each of them can only narrow."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from idumb.domain.errors import InputError
from idumb.domain.permissions import NO_POLICY, Policy
from idumb.markdown import configuration
from idumb.markdown.plans import steps
from idumb.system import user_folders
from tests.support.cases import every


def one(text: str) -> Policy:
    policy_read, findings = configuration.read_policy(text.encode())
    assert policy_read is not None, findings
    return policy_read


def file(place: Path, text: str) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")
    return place


def test_without_a_policy_file_every_tool_is_allowed_and_nothing_is_bound(tmp_path: Path) -> None:
    """R-LOCK-5."""
    assert configuration.policy(str(tmp_path)) == NO_POLICY
    assert NO_POLICY.tools is None
    assert NO_POLICY.digest is None


@every(
    "text, allowed",
    [
        ("allow: [write_file, run]\n", {"write_file", "run"}),
        ("deny: [run]\n", set(steps.TOOLS) - {"run"}),
        ("allow: [write_file, run]\ndeny: [run]\n", {"write_file"}),
        ("allow: []\n", set()),
    ],
)
def test_a_file_lists_allowed_or_forbidden_tools(text: str, allowed: set[str]) -> None:
    """R-LOCK-5."""
    assert one(text).tools == frozenset(allowed)


def test_an_empty_policy_allows_everything_and_is_bound_all_the_same() -> None:
    empty = one("# nothing yet\n")
    assert empty.tools is None
    assert empty.sources == ((configuration.POLICY_PATH, hashlib.sha256(b"# nothing yet\n").hexdigest()),)
    assert empty.digest


@every(
    "text, code, line, fix",
    [
        ("allow: [run]\nalow: [run]\n", "policy.unknown-key", 2, "did you mean `allow`?"),
        ("allow:\n- run\n- write_fle\n", "policy.bad-value", 3, "did you mean `write_file`?"),
        ("allow: run\n", "policy.bad-value", 1, ""),
        ("allow:\n", "policy.empty-value", 1, ""),
        ("allow: [[run]]\n", "policy.bad-value", 1, ""),
        ("- run\n", "policy.bad-value", 1, ""),
        ("allow: [run]\nallow: [run]\n", "yaml.duplicate-key", 2, ""),
        ("allow: &a [run]\n", "yaml.anchor", 1, ""),
    ],
)
def test_a_mistake_is_reported_with_its_line(text: str, code: str, line: int, fix: str) -> None:
    """R-LOCK-5."""
    policy_read, findings = configuration.read_policy(text.encode())
    assert policy_read is None
    assert (findings[0].code, findings[0].line) == (code, line)
    assert fix in findings[0].fix


@every("data", [b"allow: [\xff]\n", b"#" * (1024 * 1024 + 1)])
def test_an_unreadable_file_is_not_a_policy(data: bytes) -> None:
    assert configuration.read_policy(data)[0] is None


def test_a_policy_that_is_not_a_regular_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / configuration.POLICY_PATH).mkdir(parents=True)
    with pytest.raises(InputError) as refused:
        configuration.policy(str(tmp_path))
    assert refused.value.code == "policy.unreadable"


def test_the_system_wide_policy_comes_first_and_the_repository_cannot_relax_it(tmp_path: Path) -> None:
    """R-LOCK-5."""
    system = file(tmp_path / "etc/tools.yaml", "allow: [write_file, edit_file]\n")
    file(tmp_path / "repo" / configuration.POLICY_PATH, "allow: [write_file, run]\n")
    policies = configuration.policy(str(tmp_path / "repo"), [(str(system), True), ("missing.yaml", False)])
    assert policies.tools == frozenset({"write_file"})
    assert [path for path, _ in policies.sources] == [str(system), configuration.POLICY_PATH]


def test_the_variable_adds_a_policy_file_and_removes_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """R-LOCK-5."""
    assert user_folders.system_wide() == ((user_folders.SYSTEM_WIDE, False),)
    monkeypatch.setenv(user_folders.POLICY, str(tmp_path / "mine.yaml"))
    assert user_folders.system_wide() == ((user_folders.SYSTEM_WIDE, False), (str(tmp_path / "mine.yaml"), True))
