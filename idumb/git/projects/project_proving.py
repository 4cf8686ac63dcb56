"""Where checks of a project in a subfolder run: its folder in a proving tree or fresh clone of the whole repository."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from idumb.app.ports.checks import Borrowed
from idumb.app.ports.workspace import CheckedOut
from idumb.git.clones.fresh_clone import FreshClone
from idumb.git.projects.project_paths import ProjectPaths
from idumb.git.proving_tree import ProvingTree


class ProjectProving:
    """Shows the project in `folder` of what `whole` shows. Its folder exists also if the tree has no file there."""

    def __init__(self, whole: ProvingTree | FreshClone, folder: str) -> None:
        self._whole = whole
        self._paths = ProjectPaths(folder)

    @property
    def root(self) -> str:
        return os.path.join(self._whole.root, self._paths.folder)

    def show(self, tree: str, head: str | None, lent: Sequence[str] = ()) -> Mapping[str, str]:
        variables = self._whole.show(tree, head, self._paths.all_stored(lent))
        os.makedirs(self.root, exist_ok=True)
        return variables

    def prepare(self, identity: str, run: Callable[[], None]) -> None:
        # The same command prepares another folder in another project.
        self._whole.prepare(f"{identity} {self._paths.folder}", run)

    def renew(self) -> None:
        self._whole.renew()

    def restore(self) -> tuple[str, ...]:
        return self._paths.all_shown(self._whole.restore())

    def close(self) -> None:
        if isinstance(self._whole, ProvingTree):
            self._whole.close()

    @property
    def borrowed(self) -> Borrowed:
        borrowed = self._whole.borrowed
        ways = {self._paths.shown(path): way for path, way in borrowed.ways.items()}
        return borrowed._replace(ways=ways, prepared=self._paths.all_shown(borrowed.prepared))

    @property
    def unlike(self) -> Sequence[str]:
        return self._whole.unlike

    @property
    def missing(self) -> Sequence[str]:
        return self._whole.missing

    @property
    def removed(self) -> tuple[str, ...]:
        return self._paths.all_shown(self._whole.removed)

    @property
    def cached(self) -> tuple[str, ...]:
        return self._paths.all_shown(self._whole.cached)


class ProjectFreshClone(ProjectProving):
    """Implements the port `FreshClone`."""

    def __init__(self, whole: FreshClone, folder: str) -> None:
        super().__init__(whole, folder)
        self._clone = whole

    def check_out(self, commit: str) -> CheckedOut:
        return self._with_folder(self._clone.check_out(commit))

    def check_out_tree(self, ref: str, top: str, head: str | None, paths: Sequence[str]) -> CheckedOut:
        return self._with_folder(self._clone.check_out_tree(ref, top, head, self._paths.all_own(paths)))

    def _with_folder(self, checked_out: CheckedOut) -> CheckedOut:
        os.makedirs(self.root, exist_ok=True)
        return checked_out

    def stored(self, path: str, data: bytes) -> bool:
        return self._clone.stored(self._paths.stored(path), data)

    def has(self, path: str) -> bool:
        return self._clone.has(self._paths.stored(path))

    def ignored(self) -> tuple[str, ...]:
        return tuple(path for path in self._paths.kept(self._clone.ignored()) if not path.startswith(".idumb/"))
