"""Every setting with its value, its default, and where the value comes from; made of the rows that read the files."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from idumb.domain.notice import Notify
from idumb.domain.settings import Settings
from idumb.markdown.settings import configuration, setting_environment, setting_values, user_file
from idumb.markdown.syntax import tree
from idumb.markdown.syntax.record import Key
from idumb.markdown.syntax.source import CONFIG
from idumb.markdown.syntax.tree import Node


class Setting(NamedTuple):
    """`value` is what its file says, None if it says nothing; `source` is then `default`, else file and line."""

    name: str
    accepted: str
    default: Any
    value: Any
    source: str
    of_user: bool


def every(project: bytes | None, user: bytes | None) -> tuple[Setting, ...]:
    """Return all settings of the project's file and of the user's, in the order of their rows."""
    own = _of(user_file.KEYS, user, user_file.path(), {"notify": Notify()}, of_user=True)
    return (*_of(configuration.KEYS, project, configuration.PATH, Settings(), of_user=False), *own)


def overridden(settings: Iterable[Setting]) -> Iterator[Setting]:
    """Yield the settings with the values of variables."""
    variables = {".".join(names): row for names, row in setting_environment.given().items()}
    for one in settings:
        variable, value = variables.get(one.name, ("", ""))
        yield one._replace(value=value, source=variable) if variable and not one.of_user else one


def _of(keys: Mapping[str, Key], data: bytes | None, path: str, usual: Any, *, of_user: bool) -> Iterator[Setting]:
    root, source = setting_values.parsed(data or b"", path, configuration.MAX_BYTES, CONFIG)
    for names, key in setting_environment.leaves(keys):
        node = None if root is None else tree.find(root, *names)[1]
        is_set = node is not None and not node.is_null
        place = f"{path}:{source.place(node.start)[0]}" if node is not None and is_set else "default"
        value = _shown(node, source.text) if node is not None and is_set else None
        yield Setting(".".join(names), key.accepted, _default(usual, names), value, place, of_user)


def _shown(node: Node, text: str) -> str:
    """Return a value as the file has it, on one line."""
    return " ".join(text[node.start : node.end].split())


def _default(usual: Any, names: tuple[str, ...]) -> Any:
    """Return the value without any file, as plain data; None if nothing is set."""
    for name in names:
        usual = usual.get(name) if isinstance(usual, Mapping) else getattr(usual, name, None)
    if dataclasses.is_dataclass(usual) or isinstance(usual, Mapping):
        return None
    return list(usual) if isinstance(usual, tuple) else usual
