"""The user of T9: their actions on files, index and repository between two commands, and the model of these actions."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.support.project import Project

Entry = tuple[Any, ...]
Files = dict[str, Entry]


def is_own(path: str) -> bool:
    """idumb's own files, which are not part of the model."""
    return path.split("/", 1)[0] in (".idumb", ".planning")


def look(root: Path) -> Files:
    """Return every file and link below `root`: ("file", executable, bytes) or ("link", target)."""
    files: Files = {}
    for folder, folders, names in os.walk(root):
        if Path(folder) == root:
            folders[:] = [f for f in folders if f not in (".git", ".idumb", ".planning")]
        for name in [*names, *(f for f in folders if os.path.islink(os.path.join(folder, f)))]:
            place = Path(folder, name)
            files[place.relative_to(root).as_posix()] = entry(place)
    return files


def entry(place: Path) -> Entry:
    if place.is_symlink():
        return ("link", str(place.readlink()))
    return ("file", bool(place.stat().st_mode & 0o100), place.read_bytes())


def as_git(present: Entry) -> tuple[str, str]:
    """Return the mode and object id that git gives such a file."""
    data = os.fsencode(present[1]) if present[0] == "link" else present[2]
    oid = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
    return ("120000" if present[0] == "link" else "100755" if present[1] else "100644"), oid


def act(chance: random.Random, project: Project, present: Files, names: Sequence[str]) -> str:
    """Do one action, mostly outside the tasks' files; return its description."""
    kind, weight = zip(*_ACTS, strict=True)
    chosen: Callable[..., str] = chance.choices(kind, weight)[0]
    return chosen(chance, project, present, names)


def _edit(chance: random.Random, project: Project, present: Files, names: Sequence[str]) -> str:
    name = chance.choice(names)
    if _blocked(project, name):
        return "nothing"
    data = f"mine {chance.randrange(1000)}\n".encode()
    _remove(project, present, name)
    project.repo.write(name, data)
    present[name] = ("file", False, data)
    return f"edit {name}"


def _mine(chance: random.Random, project: Project, present: Files, _: Sequence[str]) -> str:
    """Change a file that no task knows: tracked, untracked or ignored."""
    name = chance.choice(("u1.txt", "u2.txt", "new.txt", "b/new.txt", "mine.log", "b/d/mine"))
    if _blocked(project, name):
        return "nothing"
    data = f"mine {chance.randrange(1000)}\n".encode()
    project.repo.write(name, data)
    present[name] = ("file", False, data)
    return f"write {name}"


def _delete(chance: random.Random, project: Project, present: Files, names: Sequence[str]) -> str:
    name = chance.choice([*names, "u2.txt"])
    if name not in present:
        return "nothing"
    _remove(project, present, name)
    return f"delete {name}"


def _mode(chance: random.Random, project: Project, present: Files, names: Sequence[str]) -> str:
    name = chance.choice(names)
    if present.get(name, ("", ""))[0] != "file":
        return "nothing"
    _, program, data = present[name]
    (project.folder / name).chmod(0o644 if program else 0o755)
    present[name] = ("file", not program, data)
    return f"chmod {name}"


def _link(chance: random.Random, project: Project, present: Files, names: Sequence[str]) -> str:
    name = chance.choice(names)
    if _blocked(project, name):
        return "nothing"
    _remove(project, present, name)
    project.repo.link(name, "u1.txt")
    present[name] = ("link", "u1.txt")
    return f"link {name}"


def _folder(chance: random.Random, project: Project, present: Files, names: Sequence[str]) -> str:
    """Put a folder in place of a task's file."""
    name = chance.choice(names)
    if _blocked(project, name):
        return "nothing"
    _remove(project, present, name)
    project.repo.write(f"{name}/inner", b"inner\n")
    present[f"{name}/inner"] = ("file", False, b"inner\n")
    return f"folder {name}"


def _stage(chance: random.Random, project: Project, present: Files, names: Sequence[str]) -> str:
    name = chance.choice([*names, "u1.txt", "new.txt"])
    done = project.repo.try_git("add", "--force", "--", name)
    return f"stage {name}" if done.returncode == 0 else "nothing"


def _commit(chance: random.Random, project: Project, present: Files, names: Sequence[str]) -> str:
    name = chance.choice([*names, "u1.txt", "u2.txt"])
    done = project.repo.try_git("commit", "--quiet", "-m", f"mine: {name}", "--", name)
    return f"commit {name}" if done.returncode == 0 else "nothing"


def _branch_and_back(chance: random.Random, project: Project, present: Files, names: Sequence[str]) -> str:
    """Switch to another branch and back, which rewrites no existing file."""
    project.repo.git("switch", "--quiet", "--create", "aside")
    project.repo.git("switch", "--quiet", "main")
    project.repo.git("branch", "--quiet", "-D", "aside")
    return "switch away and back"


def _collect(chance: random.Random, project: Project, present: Files, names: Sequence[str]) -> str:
    project.repo.git("gc", "--quiet", "--prune=now")
    return "gc --prune=now"


_ACTS: Sequence[tuple[Callable[..., str], int]] = (
    (_mine, 30), (_stage, 14), (_commit, 12), (_edit, 14), (_delete, 6), (_mode, 5), (_link, 4), (_folder, 5),
    (_branch_and_back, 4), (_collect, 4),
)  # fmt: skip


def _remove(project: Project, present: Files, name: str) -> None:
    place = project.folder / name
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    elif os.path.lexists(place):
        place.unlink()
    for path in [p for p in present if p == name or p.startswith(name + "/")]:
        del present[path]


def _blocked(project: Project, name: str) -> bool:
    """Return whether a file is above the path, or a folder in its place."""
    place = project.folder / name
    above = [project.folder.joinpath(*Path(name).parts[:n]) for n in range(1, len(Path(name).parts))]
    return any(os.path.lexists(p) and (p.is_symlink() or not p.is_dir()) for p in above) or (
        place.is_dir() and not place.is_symlink()
    )


def clear(project: Project, present: Files, restore: Any) -> None:
    """Follow the hint of a conflict: restore the files to the tasks' result."""
    for path, entry in restore.before.items():
        if present.get(path) in (entry, restore.after[path]) and not _in_the_way(present, path):
            continue
        for count in range(1, path.count("/") + 1):
            above = "/".join(path.split("/")[:count])
            if above in present:
                _remove(project, present, above)
        _remove(project, present, path)
        if entry is not None:
            _put(project, path, entry)
            present[path] = entry


def _in_the_way(present: Files, path: str) -> bool:
    above = {"/".join(path.split("/")[:n]) for n in range(1, path.count("/") + 1)}
    return not above.isdisjoint(present) or any(p.startswith(path + "/") for p in present)


def _put(project: Project, path: str, entry: Entry) -> None:
    if entry[0] == "link":
        project.repo.link(path, entry[1])
    else:
        project.repo.write(path, entry[2], mode=0o755 if entry[1] else 0o644)
