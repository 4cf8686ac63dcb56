"""Set idumb up in a repository: only own files, never one that exists, never the user's git files."""

from __future__ import annotations

from collections.abc import Mapping

from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.app.upkeep import old_idumb
from idumb.app.worktree import preconditions

IGNORED = """\
# idumb's projections that can be made again at any time; the Markdown beside them is for git.
/brain/state.json
/brain/execution/*/progress.json
*.tmp
"""

CONFIG = """\
# How idumb works in this repository. Every key is optional.

# Who builds tasks that bring no steps of their own: the name of a binding below.
# builder: my-agent
# bindings:
#   my-agent: {adapter: command, argv: [my-agent, --print], prompt: stdin}

git:
  commit: task            # task: one commit per completed task; none: hidden refs only
"""


def init(services: Services, templates: Mapping[str, str]) -> Result:
    """Create what is missing, take over what an old iDumb left; `templates` maps a path to its text. Safe to repeat."""
    preconditions.require_supported(services)
    files = {".idumb/config.yaml": CONFIG, ".idumb/.gitignore": IGNORED, ".idumb/brain/README.md": BRAIN, **templates}
    created, kept = [], []
    for path, text in files.items():
        if services.reports.exists(path):
            kept.append(path)
        else:
            services.reports.write_source(path, text)
            created.append(path)
    report = old_idumb.take_over(services)
    return Result({"created": created, "kept": kept, "taken_over": report, "next": ["idumb next"]})


BRAIN = """\
# What idumb writes here

Checkpoints and progress, for people to read. They are made from the event log in the git directory; deleting them
loses nothing. Plans are under `.planning/phases/`.
"""
