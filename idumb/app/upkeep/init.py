"""`idumb init`: create idumb's own files where they are missing; existing files and git's files never change."""

from __future__ import annotations

from collections.abc import Mapping

from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.app.upkeep import old_idumb
from idumb.app.worktree import preconditions

IGNORED = """\
# Files that idumb can rebuild at any time. Commit the Markdown files next to them.
/brain/state.json
/brain/execution/*/progress.json
*.tmp
"""

CONFIG = """\
# idumb's settings for this repository. Every key is optional.

# The agent that builds tasks without steps: the name of a binding below.
# builder: my-agent
# bindings:
#   my-agent: {adapter: command, argv: [my-agent, --print], prompt: stdin}

git:
  commit: task            # task: one commit per completed task; none: hidden refs only
"""


def init(services: Services, templates: Mapping[str, str]) -> Result:
    """Create missing files and import those of an old iDumb. `templates` maps paths to texts. Safe to repeat."""
    preconditions.require_supported(services)
    files = {".idumb/config.yaml": CONFIG, ".idumb/.gitignore": IGNORED, ".idumb/brain/README.md": BRAIN, **templates}
    created, kept = [], []
    for path, text in files.items():
        if services.reports.exists(path):
            kept.append(path)
        else:
            services.reports.write_source(path, text)
            created.append(path)
    report = old_idumb.import_files(services)
    return Result({"created": created, "kept": kept, "taken_over": report, "next": ["idumb next"]})


BRAIN = """\
# What idumb writes here

Checkpoints and progress for you to read. idumb builds these files from the event log in the git folder, so you can
delete them without losing anything. Plans are in `.planning/phases/`.
"""
