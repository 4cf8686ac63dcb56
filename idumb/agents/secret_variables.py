"""Which variables of the environment are secrets, or may be: by the configuration, by their names and their values."""

from __future__ import annotations

import re
from collections.abc import Mapping

from idumb.domain.settings import Settings
from idumb.system import child_process

_SECRET = re.compile(  # an address may contain a password
    "KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|PRIVATE|AUTH|DSN|_URL$|_URI$", re.IGNORECASE
)
_WORD = re.compile("[A-Za-z]{1,20}[0-9]{0,2}|[0-9]{1,8}|[A-Za-z0-9]{1,3}")
_BETWEEN = re.compile("[-_./:@,= ]+")
_SAYS_SO = re.compile(  # whole words: AUTH does not match AUTHOR, and PGPASSWORD ends in one
    "(?:(?:PASSWORD|PASSWD|PASSPHRASE|TOKEN|SECRET|APIKEY)|(?:^|_)(?:KEY|CREDENTIAL|PRIVATE|AUTH|DSN))S?(?:_|$)",
    re.IGNORECASE,
)
_NO_SECRET = re.compile("GIT_(?:AUTHOR|COMMITTER)_.*|XAUTHORITY|.*_(?:SOCK|FILE|PATH)", re.IGNORECASE)
_PLACE = re.compile(r"~(?:/.*)?|(?:/[\w.@ -]+){2,}/?")  # a key in base64 may begin with a slash too
_LONG = 16  # part of a flag; longer values are not settings
_MIXED = re.compile("[0-9]{5,}|(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9]{3}")


def passed(settings: Settings) -> dict[str, str]:
    """Return name and value of every passed variable that is or may be a secret; their values are redacted everywhere.

    These are the variables that a binding names, and other variables whose names suggest a secret.
    """
    names = [name for binding in settings.bindings.values() for name in binding.environment]
    return child_process.environment([*names, *(name for name in settings.environment if _SECRET.search(name))])


def certain(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the values that are certainly secrets: they consist of no words and are neither paths nor flags.

    A project, a profile, a path, a model or the password `postgres` would match in half of all file names.
    """
    return {name: value for name, value in variables.items() if _is_certain(name, value)}


def _is_certain(name: str, value: str) -> bool:
    if _NO_SECRET.fullmatch(name) or _PLACE.fullmatch(value):
        return False
    parts = [part for part in _BETWEEN.split(value) if part]
    if not all(_WORD.fullmatch(part) for part in parts):
        return not (value.startswith("--") and max(map(len, parts)) < _LONG)
    # If the name says secret, pieces such as `x7k` and long numbers do not count as words.
    return bool(_SAYS_SO.search(name)) and any(_MIXED.fullmatch(part) for part in parts)


def by_name() -> dict[str, str]:
    """Return the variables of this process whose names suggest a secret."""
    return child_process.environment(filter(_SECRET.search, child_process.variables()))
