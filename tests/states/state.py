"""The state of a user's repository, and the small project that is brought into it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.states.states import KIT, State
from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import delete, edit, shell, task, write

TOUCHED = ("app.txt", "old.txt", "out/one.txt", "out/two.txt")
"""The paths that the tasks of the plan declare, and nothing else may change."""

FILES: Mapping[str, str | bytes] = {
    ".gitignore": "*.log\nbuild/\n.secret\n",
    "app.txt": "one\ntwo\nthree\n",
    "old.txt": "old\n",
    "docs/kept.txt": "kept\n",
    "docs/deep/kept.txt": "kept too\n",
    "first.txt": "1\n2\n3\n4\n5\n6\n7\n8\n9\n",
    "second.txt": "second\n",
    "third.txt": "third\n",
    "tool.sh": "#!/bin/sh\n",
}


@dataclass(frozen=True, slots=True)
class Scene:
    """The folder of one case. `repo` is in it; `actor` runs while the second task is built, `judge` as its check.

    Both run in checkouts elsewhere, so they find the folder by `variables`.
    """

    case: Path
    repo: GitSandbox

    @property
    def variables(self) -> Mapping[str, str]:
        return {"CASE": str(self.case)}

    @property
    def outside(self) -> Path:
        place = self.case / "outside"
        place.mkdir(exist_ok=True)
        return place


def bring(scene: Scene, state: State) -> GitSandbox:
    """Bring the repository into the state; return the one in which the work is done."""
    environment = {**os.environ, **scene.variables, "LC_ALL": "C"}
    script = ["sh", "-ec", KIT + state.script]
    done = subprocess.run(script, cwd=scene.repo.root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
    return GitSandbox(scene.case / state.elsewhere) if state.elsewhere else scene.repo


def template(place: Path) -> str:
    """The project at `place`/repo, with a plan of two tasks that is committed; the hash to consent to."""
    project = projects.create(GitSandbox.create(place / "repo"), files=FILES)
    project.repo.git("update-index", "--chmod=+x", "tool.sh")
    (project.folder / "tool.sh").chmod(0o755)
    project.repo.git("commit", "--quiet", "-m", "a tool")
    project.configure("environment: [CASE]\n")
    project.plan(
        [
            task(
                "T1-01",
                files="modify `app.txt`, create `out/one.txt`",
                check="grep -q TWO app.txt && test -s out/one.txt",
                steps=[edit("app.txt", "two", "TWO"), write("out/one.txt", "one\n")],
            ),
            task(
                "T1-02",
                files="delete `old.txt`, create `out/two.txt`",
                check='test -s out/two.txt && sh "$CASE/judge"',
                after="T1-01",
                steps=[delete("old.txt"), write("out/two.txt", "two\n"), shell('sh "$CASE/actor"')],
            ),
        ]
    )
    for name in ("actor", "judge"):
        (place / name).write_text("exit 0\n", encoding="ascii")
    return project.approval()


def copied(template_folder: Path, case: Path) -> Scene:
    shutil.copytree(template_folder, case, symlinks=True)
    return Scene(case, GitSandbox(case / "repo"))
