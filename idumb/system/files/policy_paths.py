"""Where the administrator of a machine says which tools plans may use."""

from __future__ import annotations

import os

SYSTEM_WIDE = "/etc/idumb/policy/tools.yaml"
VARIABLE = "IDUMB_TOOL_POLICY"


def system_wide() -> tuple[tuple[str, bool], ...]:
    """Paths, each with whether the file must be there. The variable adds a file, so it can only narrow what is allowed.

    A file that was asked for by name and is missing must not count as no policy.
    """
    named = os.environ.get(VARIABLE, "")
    return ((SYSTEM_WIDE, False), *(((os.path.abspath(named), True),) if named else ()))
