"""Read the user's prompt templates, `.idumb/prompts/<name>.md`."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping

from idumb.domain.errors import InputError
from idumb.markdown.settings import setting_values
from idumb.system.files import named_files

FOLDER = ".idumb/prompts"
ENDING = ".md"
MAX_BYTES = 256 * 1024
MAX_FILES = 100


def load(root: str) -> Mapping[str, str]:
    """Return the templates by name. Raises InputError `prompt.unreadable` for links, large and non-UTF-8 files.

    Links are never followed: through them a repository could show any file of the user to a model.
    """
    folder = os.path.join(root, FOLDER)
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(ENDING))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as problem:
        raise _unreadable(FOLDER, problem.strerror or str(problem)) from problem
    for part in (os.path.dirname(folder), folder):
        if stat.S_ISLNK(os.lstat(part).st_mode):
            raise _unreadable(os.path.relpath(part, root), "it is a symbolic link")
    if len(names) > MAX_FILES:
        raise _unreadable(FOLDER, f"it contains more than {MAX_FILES} templates")
    return {name.removesuffix(ENDING): _text(os.path.join(folder, name), f"{FOLDER}/{name}") for name in names}


def _text(path: str, shown: str) -> str:
    if not re.fullmatch(setting_values.TEMPLATE, os.path.basename(path).removesuffix(ENDING)):
        raise _unreadable(shown, "its name may contain only letters, digits, `_`, `.` and `-`")
    try:
        if stat.S_ISLNK(os.lstat(path).st_mode):
            raise _unreadable(shown, "it is a symbolic link")
        data = named_files.read(path, MAX_BYTES + 1)
    except OSError as problem:
        raise _unreadable(shown, problem.strerror or str(problem)) from problem
    try:
        return setting_values.decoded(data, MAX_BYTES)
    except ValueError as problem:
        raise _unreadable(shown, f"it {problem}") from problem


def _unreadable(shown: str, why: str) -> InputError:
    return InputError("prompt.unreadable", f"The prompt template {shown} cannot be used: {why}.", hint=f"ls -l {shown}")
