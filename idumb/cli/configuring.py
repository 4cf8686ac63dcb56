"""The settings of the repository and of the user, as `idumb config` shows and changes them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from idumb.app.core import run_lookup
from idumb.app.core.services import Result, fields
from idumb.domain import wording
from idumb.domain.action import Action
from idumb.domain.errors import InputError
from idumb.domain.runs.run import CLOSED
from idumb.markdown import configuration, single_settings
from idumb.markdown.single_settings import Setting
from idumb.markdown.syntax.source import CONFIG
from idumb.system import atomic_write, private_folders

if TYPE_CHECKING:
    from idumb.app.core.services import Services


_ALL = Action.of("config", "list", "--all")


def listed(services: Services, *, every: bool) -> Result:
    """Return the settings that a file sets; with `every`, all."""
    found = [one for one in _settings(services) if every or one.value is not None]
    return Result({"settings": [_row(one) for one in found], "files": _files(services)})


def one(services: Services, name: str) -> Result:
    return Result({"settings": [_row(_named(services, name))], "files": _files(services)})


def paths(services: Services) -> Result:
    return Result({"settings": [], "files": _files(services)})


def change(services: Services, name: str, value: str) -> Result:
    """Write one setting into its file. Every other byte stays; a value that its row does not accept is refused."""
    setting = _named(services, name)
    place = single_settings.user_path() if setting.of_user else os.path.join(services.root, configuration.PATH)
    shown = place if setting.of_user else configuration.PATH
    before = configuration.data_of(place, shown, CONFIG) or b""
    value = single_settings.as_text(value) if setting.is_text else value
    after = single_settings.with_setting(before, shown, name.split("."), value)
    read: Any = single_settings.read_user_file if setting.of_user else configuration.read
    findings = read(after, shown)[1]
    if findings:
        raise configuration.rejected("config.invalid", findings, f"idumb config explain {name}")
    if _others(before, setting) != _others(after, setting):
        words = f"{value!r} is more than one value of YAML, so nothing was written."
        raise InputError("config.invalid", words, hint=Action.of("config", "explain", name))
    if setting.of_user:
        private_folders.make(os.path.dirname(place))
        atomic_write.write(place, after)
        return one(services, name)
    services.files.write_source(configuration.PATH, after.decode("utf-8"))
    changed = _deciding(before) != _deciding(after)
    return Result(one(services, name).data, warnings=tuple(_unfinished(services)) if changed else ())


def _deciding(data: bytes) -> dict[str, Any] | None:
    """Return the settings of the repository that decide what runs or is written; None if the file is invalid."""
    settings, _ = configuration.read(data)
    return None if settings is None else settings.deciding()


def _others(data: bytes, setting: Setting) -> list[tuple[str, str | None]]:
    """Return the values of all other settings of the file."""
    files = (None, data) if setting.of_user else (data, None)
    return [(one.name, one.value) for one in single_settings.every(*files) if one.name != setting.name]


def _unfinished(services: Services) -> Iterator[str]:
    """Yield a line if runs continue only with the configuration that they started with."""
    left = [state.phase for state in run_lookup.latest_runs(services) if state.state not in CLOSED]
    if left:
        words = f"Phase {wording.listed(left, 5)}: the run is not finished, and continues only with the settings before"
        yield f"{words}; idumb execute-phase {left[0]} starts a new one, which keeps what is done"


def _settings(services: Services) -> Sequence[Setting]:
    user, project = single_settings.user_path(), os.path.join(services.root, configuration.PATH)
    data = (configuration.data_of(*place, CONFIG) for place in ((project, configuration.PATH), (user, user)))
    return tuple(single_settings.overridden(single_settings.every(*data)))


def _named(services: Services, name: str) -> Setting:
    settings = {one.name: one for one in _settings(services)}
    if name in settings:
        return settings[name]
    below = [known for known in settings if known.startswith(f"{name}.")]
    if below:
        raise InputError("config.section", f"{name} is a section. Its settings: {', '.join(below)}.", hint=_ALL)
    raise single_settings.no_setting(name, settings)


def _row(setting: Setting) -> dict[str, Any]:
    shown = fields(setting, "name", "accepted", "default", "value", "source")
    return {**shown, "file": "user" if setting.of_user else "project"}


def _files(services: Services) -> list[dict[str, Any]]:
    project = os.path.join(services.root, configuration.PATH)
    rows = (("project", project), ("user", single_settings.user_path()))
    return [{"file": name, "path": path, "exists": os.path.exists(path)} for name, path in rows]
