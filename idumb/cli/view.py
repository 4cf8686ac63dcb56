"""The view that `status`, `next` and `roadmap` print: the cached one while it is valid, else a new one.

These commands run often, so this module imports nothing that the cached view does not need.
"""

from __future__ import annotations

import os
from typing import Any

from idumb.app.core.result import Result


def current() -> Result:
    from idumb.composition import status_view

    cached = status_view.saved(os.getcwd())
    return Result(cached if cached is not None else _fresh())


def _fresh() -> dict[str, Any]:
    from idumb.cli import options
    from idumb.composition import status_view

    with options.services() as services:
        return status_view.refresh(services)
