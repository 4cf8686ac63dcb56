"""Templates, slash commands and pages that ship with idumb: in the package of a wheel, else next to it."""

from __future__ import annotations

import os
from typing import Any

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_FOLDERS = (os.path.join(_PACKAGE, "_templates"), os.path.join(os.path.dirname(_PACKAGE), "templates"))
_PAGES = (os.path.join(_PACKAGE, "_docs"), os.path.join(os.path.dirname(_PACKAGE), "docs"))
_SCHEMAS = tuple(os.path.join(folder, "schemas") for folder in _PAGES)
_COMMANDS = (os.path.join(_PACKAGE, "_commands"), os.path.join(os.path.dirname(_PACKAGE), "commands"))


def template(name: str) -> str:
    """Return the text of `templates/<name>`. Raises FileNotFoundError if the installation lacks it."""
    path = place(name)
    if path is None:
        raise FileNotFoundError(2, "This installation of idumb lacks a template", name)
    with open(path, encoding="utf-8") as stream:
        return stream.read()


def place(name: str) -> str | None:
    """Return the path of `templates/<name>`; None if the installation lacks it."""
    return next((path for folder in _FOLDERS if os.path.exists(path := os.path.join(folder, name))), None)


def commands() -> dict[str, str]:
    """Return the text of every slash command by name. Raises FileNotFoundError if the installation lacks them."""
    return _texts(_COMMANDS, "slash commands")


def pages() -> dict[str, str]:
    """Return the text of every page of `idumb help` by name.

    Raises FileNotFoundError if the installation lacks them.
    """
    return _texts(_PAGES, "help pages")


def schemas() -> dict[str, Any]:
    """Return every JSON Schema by name. Raises FileNotFoundError if the installation lacks them."""
    import json

    return {name: json.loads(text) for name, text in _texts(_SCHEMAS, "schemas", ".json").items()}


def snippets() -> dict[str, Any]:
    """Return the snippets for VS Code by name."""
    import json

    loaded: dict[str, Any] = json.loads(template("vscode/idumb.code-snippets"))
    return loaded


def workflows() -> str | None:
    """Return the folder of the workflows that ship with idumb; None if the installation lacks it."""
    return place("workflows")


def _texts(folders: tuple[str, ...], content: str, ending: str = ".md") -> dict[str, str]:
    folder = next((place for place in folders if os.path.isdir(place)), None)
    if folder is None:
        raise FileNotFoundError(2, f"This installation of idumb lacks its {content}", os.path.basename(folders[-1]))
    texts = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(ending) and name != "README.md":
            with open(os.path.join(folder, name), encoding="utf-8") as stream:
                texts[name.removesuffix(ending)] = stream.read()
    return texts
