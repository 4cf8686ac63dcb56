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
from idumb.markdown.plans import step_tools
from idumb.markdown.settings.setting_values import parsed, rejected
from idumb.markdown.syntax import record
from idumb.markdown.syntax.problems import POLICY, Place
from idumb.markdown.syntax.record import choice, list_of, section
from idumb.system.files import named_files

PATH = ".idumb/policy/tools.yaml"
MAX_BYTES = 64 * 1024


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
    node, problems = parsed(data, path, MAX_BYTES, POLICY)
    tools = record.value(_POLICY, node, Place("", problems, kind=POLICY, key="policy")) if node is not None else {}
    if problems.any_error:
        return None, problems.sorted()
    allowed = frozenset(tools.get("allow", step_tools.TOOLS)) - frozenset(tools.get("deny", ()))
    return Policy(allowed if tools else None, ((path, hashlib.sha256(data).hexdigest()),)), problems.sorted()


_TOOLS = list_of(choice(*step_tools.TOOLS), "a list of tools")
_POLICY = section(dict, {"allow": _TOOLS, "deny": _TOOLS}, "allow and deny, each with a list of tools")
