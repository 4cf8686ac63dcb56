"""Templates and slash commands that come with the program: in the wheel inside the package, in a checkout beside."""

from __future__ import annotations

import os

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_FOLDERS = (os.path.join(_PACKAGE, "_templates"), os.path.join(os.path.dirname(_PACKAGE), "templates"))
_COMMANDS = (os.path.join(_PACKAGE, "_commands"), os.path.join(os.path.dirname(_PACKAGE), "commands"))


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


def commands() -> dict[str, str]:
    """Name to text of every slash command; FileNotFoundError where the installation lacks them."""
    folder = next((place for place in _COMMANDS if os.path.isdir(place)), None)
    if folder is None:
        raise FileNotFoundError(2, "This installation of idumb lacks its slash commands", "commands")
    names = sorted(name for name in os.listdir(folder) if name.endswith(".md") and name != "README.md")
    found = {}
    for name in names:
        with open(os.path.join(folder, name), encoding="utf-8") as stream:
            found[name.removesuffix(".md")] = stream.read()
    return found
