"""`.idumb/policy/tools.yaml` and the system-wide policies as a `Policy`. All problems are reported at once."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Iterable

from idumb.domain import settings
from idumb.domain.errors import InputError
from idumb.domain.finding import Finding, did_you_mean
from idumb.domain.settings import Policy
from idumb.markdown.plans import step_tools
from idumb.markdown.settings.setting_values import DID_YOU_MEAN, decoded, rejected, shown
from idumb.markdown.syntax import tree
from idumb.markdown.syntax.problems import Field, Problems
from idumb.markdown.syntax.source import Source
from idumb.markdown.syntax.tree import Node, is_list, is_map, is_text
from idumb.system.files import named_files

PATH = ".idumb/policy/tools.yaml"
MAX_BYTES = 64 * 1024
_KEYS = ("allow", "deny")


def load(root: str, system: Iterable[tuple[str, bool]] = ()) -> Policy:
    """Return the policy of the repository at `root`, narrowed by system-wide files (path, required).

    Raises InputError `policy.unreadable` or `policy.invalid`: an unreadable policy must not allow anything.
    """
    policies = [_read_policy(path, path, required=required) for path, required in system]
    policies.append(_read_policy(os.path.join(root, PATH), PATH, required=False))
    return settings.narrow(tuple(policy for policy in policies if policy is not None))


def _read_policy(place: str, shown: str, *, required: bool) -> Policy | None:
    try:
        data = named_files.read(place, MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError) as problem:
        if required:
            raise _unreadable(shown, "the file does not exist") from problem
        return None
    except OSError as problem:
        raise _unreadable(shown, problem.strerror or str(problem)) from problem
    policy, findings = read(data, shown)
    if policy is None:
        raise rejected("policy.invalid", findings, "idumb help configuration shows a policy")
    return policy


def _unreadable(shown: str, why: str) -> InputError:
    return InputError("policy.unreadable", f"The policy {shown} cannot be read: {why}.", hint=f"ls -l {shown}")


@functools.lru_cache(maxsize=4)  # a run reads the files again before each attempt; they seldom change
def read(data: bytes, path: str = PATH) -> tuple[Policy | None, tuple[Finding, ...]]:
    """Return a policy from the bytes of its file; None if a finding is an error."""
    try:
        text = decoded(data, MAX_BYTES)
    except ValueError as why:
        problems = Problems(Source("", path))
        message = f"The policy {why}"
        problems.error("policy.bad-value", 0, message, accepted="UTF-8 text", fix="Save the file as UTF-8.")
        return None, problems.sorted()
    problems = Problems(Source(text, path))
    node = tree.read(text, lambda at: at, problems, "policy")
    tools = {} if problems.any_error else _tools_by_key(node, problems)
    if problems.any_error:
        return None, problems.sorted()
    allowed = frozenset(tools.get("allow", step_tools.TOOLS)) - frozenset(tools.get("deny", ()))
    return Policy(allowed if tools else None, ((path, hashlib.sha256(data).hexdigest()),)), problems.sorted()


def _tools_by_key(node: Node | None, problems: Problems) -> dict[str, list[str]]:
    """Return the tools by key."""
    if node is None or (is_text(node) and node.is_null):
        return {}
    if not is_map(node):
        _wrong(problems, node, "policy", "allow and deny, each with a list of tools")
        return {}
    tools: dict[str, list[str]] = {}
    for key, value in node.pairs:
        if key.value in _KEYS:
            tools[key.value] = _tools(key.value, value, problems)
            continue
        fix = did_you_mean(key.value, _KEYS, "Remove the key.", DID_YOU_MEAN)
        message = f"Unknown key `{key.value}` in a policy"
        field = Field(key.value, problems)
        field.error("policy.unknown-key", key.start, message, key.value, "allow, deny", fix)
    return tools


def _tools(key: str, node: Node, problems: Problems) -> list[str]:
    if not is_list(node):
        _wrong(problems, node, key, "a list of tools")
        return []
    tools = []
    for item in node.items:
        if is_text(item) and item.value in step_tools.TOOLS:
            tools.append(item.value)
        else:
            _wrong(problems, item, key, ", ".join(step_tools.TOOLS))
    return tools


def _wrong(problems: Problems, node: Node, field: str, accepted: str) -> None:
    found = shown(node)
    tools = step_tools.TOOLS if is_text(node) else ()
    fix = did_you_mean(found, tools, f"Write {accepted}.", DID_YOU_MEAN)
    message = f"{field}: {found!r} is not {accepted}"
    Field(field, problems).error("policy.bad-value", node.start, message, found, accepted, fix)
