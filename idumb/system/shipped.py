"""Files that ship with idumb: templates, slash commands and pages, in the package of a wheel, or else next to it."""

from __future__ import annotations

import json
import os
from typing import Any

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def _folder(name: str) -> str:
    """Return the folder of this name in the package of a wheel, else the one next to the package."""
    packed = os.path.join(_PACKAGE, f"_{name}")
    return packed if os.path.isdir(packed) else os.path.join(os.path.dirname(_PACKAGE), name)


def template(name: str) -> str:
    """Return the text of `templates/<name>`. Raises FileNotFoundError if the installation lacks it."""
    with open(path(name), encoding="utf-8") as stream:
        return stream.read()


def path(name: str) -> str:
    """Return the path of `templates/<name>`."""
    return os.path.join(_folder("templates"), name)


def commands() -> dict[str, str]:
    """Return the text of every slash command by name. Raises FileNotFoundError if the installation lacks them."""
    return _texts("commands")


def pages() -> dict[str, str]:
    """Return the text of every page of `idumb help` by name.

    Raises FileNotFoundError if the installation lacks them.
    """
    return _texts("docs")


def schemas() -> dict[str, Any]:
    """Return every JSON Schema by name. Raises FileNotFoundError if the installation lacks them."""
    return {name: json.loads(text) for name, text in _texts("docs/schemas", ".json").items()}


def snippets() -> dict[str, Any]:
    """Return the snippets for VS Code by name."""
    loaded: dict[str, Any] = json.loads(template("vscode/idumb.code-snippets"))
    return loaded


def _texts(place: str, ending: str = ".md") -> dict[str, str]:
    folder, texts = _folder(place), dict[str, str]()
    for name in sorted(os.listdir(folder)):
        if name.endswith(ending) and name != "README.md":
            with open(os.path.join(folder, name), encoding="utf-8") as stream:
                texts[name.removesuffix(ending)] = stream.read()
    return texts
