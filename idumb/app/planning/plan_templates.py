"""The templates of plans: those that come with idumb, and those of the repository, which replace them by name."""

from __future__ import annotations

from collections.abc import Callable

from idumb import lazy_pattern
from idumb.app.core.services import Services
from idumb.domain import wording
from idumb.domain.errors import InputError

FOLDER = ".idumb/templates"
NAMES = ("feature", "bugfix", "refactor", "migration", "docs", "spike")
DEFAULT = "feature"
_NAME = lazy_pattern.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")

Shipped = Callable[[str], str]
"""Returns the text of a template that comes with idumb."""


def load(services: Services, name: str, shipped: Shipped) -> str:
    """Return the template of this name: `.idumb/templates/NAME.md` if it exists, else the shipped one."""
    own = services.reports.read(f"{FOLDER}/{name}.md") if _NAME.fullmatch(name) else None
    if own is not None:
        return own
    if name in NAMES:
        return shipped(name)
    raise InputError(
        "template.unknown",
        f"There is no template {wording.one_line(name)}: neither idumb nor {FOLDER}/ has it.",
        hint=f"The templates of idumb: {', '.join(NAMES)}",
    )
