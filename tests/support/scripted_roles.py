"""A project with a phase to plan, and scripted agents for its roles."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project

# Answers the n-th request of a role with its n-th reply, the last one for ever after; keeps every prompt.
AGENT = """
import json, os, pathlib, sys
place = pathlib.Path(sys.argv[1])
role = os.environ["IDUMB_ROLE"]
number = len(list(place.glob(role + "-*.md"))) + 1
(place / f"{role}-{number}.md").write_text(sys.stdin.read())
pathlib.Path("stray.txt").write_text(role)
pathlib.Path("README.md").write_text("changed")
replies = json.loads((place / "replies.json").read_text())[role]
reply = replies[min(number, len(replies)) - 1]
if reply is None:
    sys.exit(3)
if (place / "write.json").exists():
    for path, text in json.loads((place / "write.json").read_text()).items():
        pathlib.Path(path).write_text(text)
print(reply)
"""


@dataclass(frozen=True, slots=True)
class PlanningProject:
    """A project with phase 2 in its roadmap, and scripted agents."""

    project: Project
    place: Path

    def answers(self, **replies: Sequence[str | None]) -> None:
        """By role, `_` for `-`; a role without replies is not bound. None is an exit with a failure."""
        named: Mapping[str, Sequence[str | None]] = {
            role.replace("_", "-"): replies_of for role, replies_of in replies.items()
        }
        (self.place / "replies.json").write_text(json.dumps(named))
        argv = json.dumps([sys.executable, str(self.place / "agent.py"), str(self.place)])
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
    (place / "agent.py").write_text(AGENT)
    return PlanningProject(project, place)
