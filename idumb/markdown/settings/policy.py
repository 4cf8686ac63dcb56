"""`.idumb/policy/tools.yaml` and the system-wide policies as a `Policy`. All problems are reported at once."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Iterable

from idumb.domain import settings
from idumb.domain.errors import InputError
from idumb.domain.finding import Finding
from idumb.domain.settings import Policy
from idumb.markdown.plans import steps
from idumb.markdown.settings import setting_values as rows
from idumb.markdown.syntax import record
from idumb.markdown.syntax.record import choice, list_of, section
from idumb.markdown.syntax.source import POLICY, Place

PATH = ".idumb/policy/tools.yaml"
MAX_BYTES = 64 * 1024


def load(root: str, system: Iterable[tuple[str, bool]] = ()) -> Policy:
    """Return the policy of the repository at `root`, narrowed by system-wide files (path, required).

    Raises InputError `policy.unreadable` or `policy.invalid`: an unreadable policy must not allow anything.
    """
    policies = []
    for path, required in (*system, (PATH, False)):
        policy = rows.of_file(
            os.path.join(root, path), path, MAX_BYTES, POLICY, read, "idumb help configuration shows a policy"
        )
        if policy is None and required:
            raise InputError("policy.unreadable", f"The policy {path} does not exist.", hint=f"ls -l {path}")
        policies += [policy] if policy is not None else []
    return settings.narrow(tuple(policies))


@functools.lru_cache(maxsize=4)  # a run reads the files again before each attempt; they seldom change
def read(data: bytes, path: str = PATH) -> tuple[Policy | None, tuple[Finding, ...]]:
    """Return a policy from the bytes of its file; None if a finding is an error."""
    node, source = rows.parsed(data, path, MAX_BYTES, POLICY)
    tools = record.value(_POLICY, node, Place("", source, kind=POLICY, key="policy")) if node is not None else {}
    if source.any_error:
        return None, source.sorted()
    allowed = frozenset(tools.get("allow", steps.TOOLS)) - frozenset(tools.get("deny", ()))
    return Policy(allowed if tools else None, ((path, hashlib.sha256(data).hexdigest()),)), source.sorted()


_TOOLS = list_of(choice(*steps.TOOLS), "a list of tools")
_POLICY = section(dict, {"allow": _TOOLS, "deny": _TOOLS}, "allow and deny, each with a list of tools")
