"""The view behind `status`, `next` and `roadmap`: the kept one while it is true, else made anew.

These commands are called often, so this module imports nothing that the kept view does not need.
"""

from __future__ import annotations

import os
from typing import Any

from idumb.app.core.result import Result


def current() -> Result:
    from idumb.composition import status_view

    kept = status_view.saved(os.getcwd())
    return Result(kept if kept is not None else _fresh())


def _fresh() -> dict[str, Any]:
    from idumb.cli import options
    from idumb.composition import status_view

    with options.services() as services:
        return status_view.refresh(services)
