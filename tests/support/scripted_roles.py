"""A project with a phase to plan, and scripted agents for its roles."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project

# Answers the n-th request of a role with its n-th reply, the last one for ever after; keeps every prompt.
AGENT = """
place=$1 number=1
while [ -e "$place/$IDUMB_ROLE-$number.md" ]; do number=$((number + 1)); done
cat > "$place/$IDUMB_ROLE-$number.md"
echo "$IDUMB_ROLE" > stray.txt
echo changed > README.md
while [ ! -e "$place/replies/$IDUMB_ROLE-$number" ]; do number=$((number - 1)); done
[ -s "$place/replies/$IDUMB_ROLE-$number" ] || exit 3
if [ -e "$place/meanwhile.sh" ]; then . "$place/meanwhile.sh"; fi
cat "$place/replies/$IDUMB_ROLE-$number"
"""


@dataclass(frozen=True, slots=True)
class PlanningProject:
    """A project with phase 2 in its roadmap, and scripted agents."""

    project: Project
    place: Path

    def answers(self, **replies: Sequence[str | None]) -> None:
        """By role, `_` for `-`; a role without replies is not bound. None is an exit with a failure."""
        folder = self.place / "replies"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        named = {role.replace("_", "-"): replies_of for role, replies_of in replies.items()}
        for role, replies_of in named.items():
            for number, reply in enumerate(replies_of, start=1):
                (folder / f"{role}-{number}").write_text("" if reply is None else f"{reply}\n")
        argv = json.dumps(["sh", str(self.place / "agent.sh"), str(self.place)])
        roles = "".join(f"  {role}: {{binding: scripted}}\n" for role in named)
        self.project.configure(f"bindings:\n  scripted: {{adapter: command, argv: {argv}}}\nroles:\n{roles}")

    def run(self, *arguments: str) -> Answer:
        """A command under consent to the agents it names."""
        refused = self.project.quick(*arguments, "--json")
        if refused.code != 5 or refused.error["code"] != "consent.missing":
            return refused
        return self.project.quick(*arguments, "--json", "--approve", refused.error["details"]["consent_hash"])

    def prompts(self, role: str) -> list[str]:
        return [place.read_text() for place in sorted(self.place.glob(f"{role}-*.md"))]


def create(sandbox: GitSandbox, place: Path) -> PlanningProject:
    """`place` is a new folder for the agents, outside the repository."""
    project = projects.create(sandbox)
    assert project.quick("roadmap", "--add", "Greet", "--goal", "Everybody is greeted").code == 0
    project.commit_own()
    place.mkdir()
    (place / "agent.sh").write_text(AGENT)
    return PlanningProject(project, place)
