"""The user's own file, `~/.config/idumb/config.yaml`: what no repository may set."""

from __future__ import annotations

import os

from idumb.domain import notice
from idumb.domain.finding import Finding
from idumb.domain.notice import Notify
from idumb.markdown.settings import setting_values as rows
from idumb.markdown.syntax import record
from idumb.markdown.syntax.record import BOOLEAN, choice, list_of, matching, section
from idumb.markdown.syntax.source import CONFIG, Place
from idumb.system.files import user_folders

NAME = "config.yaml"
_MAX_BYTES = 64 * 1024
_URL = matching("an http or https address", lambda text: text.startswith(("https://", "http://")) and " " not in text)
KEYS = {
    "notify": section(
        Notify,
        {
            "on": list_of(choice(*notice.KINDS), f"a list of {', '.join(notice.KINDS)}"),
            "command": rows.ARGUMENTS,
            "webhook": _URL,
            "desktop": BOOLEAN,
        },
    )
}
_FILE = record.Key("keys with values", lambda node, place: record.record(node, KEYS, place, "your file"), keys=KEYS)


def path() -> str:
    """Return where the file is: below `$XDG_CONFIG_HOME`, else below `~/.config`."""
    return os.path.join(user_folders.configuration(), NAME)


def notify() -> Notify | None:
    """Return the user's settings of notices, None without any. InputError `config.invalid` with findings."""
    return rows.of_file(path(), path(), _MAX_BYTES, CONFIG, read, f"Fix {path()}")


def read(data: bytes, shown: str) -> tuple[Notify | None, tuple[Finding, ...]]:
    """Return the settings of the user's file, and what is wrong with it. `shown` is its name in messages."""
    node, source = rows.parsed(data, shown, _MAX_BYTES, CONFIG)
    place = Place("", source, kind=CONFIG, key="configuration")
    given = None if node is None or source.any_error else record.value(_FILE, node, place)
    return (given or {}).get("notify"), source.sorted()
