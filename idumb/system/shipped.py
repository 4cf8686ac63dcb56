"""Templates that come with the program: in the wheel inside the package, in a checkout beside it."""

from __future__ import annotations

import os

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_FOLDERS = (os.path.join(_PACKAGE, "_templates"), os.path.join(os.path.dirname(_PACKAGE), "templates"))


def template(name: str) -> str:
    """The text of `templates/<name>`; FileNotFoundError where the installation lacks it."""
    path = place(name)
    if path is None:
        raise FileNotFoundError(2, "This installation of idumb lacks a template", name)
    with open(path, encoding="utf-8") as stream:
        return stream.read()


def place(name: str) -> str | None:
    """Where `templates/<name>` is; None where the installation lacks it."""
    return next((path for folder in _FOLDERS if os.path.exists(path := os.path.join(folder, name))), None)
