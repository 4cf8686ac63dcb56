"""Agent hosts: where each looks for slash commands, and in which format.

A new host is a new row here and, if its format is new, a function below. Read in November 2026:
developers.openai.com/codex, geminicli.com/docs/cli/custom-commands, opencode.ai/v2/docs/commands, docs.windsurf.com,
code.visualstudio.com/docs (a user's own prompt files are in the profile of VS Code), qwenlm.github.io/qwen-code-docs
(Qwen 0.15 replaces `{{args}}` and not `$ARGUMENTS`), and public guides to Claude Code and Cursor.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from msgspec import Struct

from idumb.domain.envelope import text_digest

PREFIX = "idumb-"
_ALL = "what the user wrote with this command"
_MARK = re.compile(r"^(?:<!-- |# )idumb:installed \S+ sha256:([0-9a-f]{64})(?: -->)?\n", re.MULTILINE)


class Command(Struct, frozen=True):
    """A slash command of `commands/`: the values of its frontmatter, and the text for the agent."""

    name: str
    description: str
    hint: str
    tools: str
    body: str


class Host(Struct, frozen=True):
    """One host.

    - `project`: a folder in the repository. `user`: a folder in the user's home directory, None if it has none.
    - `variable`: an environment variable that replaces the first part of `user`.
    - `form`: makes the file. `file`: its name, with `{}` for the command's.
    - `typed`: how a user calls the command.
    - `also`: other places where the host looks, in another format.
    """

    name: str
    project: str
    user: str | None
    form: Callable[[Command], str]
    file: str = "{}.md"
    typed: str = "/{}"
    variable: str | None = None
    also: tuple[Host, ...] = ()

    @property
    def places(self) -> tuple[Host, ...]:
        """This host, and the other places where it looks."""
        return (self, *self.also)


def markdown(
    *keys: str, arguments: str = "$ARGUMENTS", more: Mapping[str, str] | None = None
) -> Callable[[Command], str]:
    """Return a function that writes Markdown with those keys of the frontmatter that the host reads."""

    def render(command: Command) -> str:
        values = {"description": command.description, "argument-hint": command.hint, "allowed-tools": command.tools}
        entries = {key: values[key] for key in keys if values[key]} | dict(more or {})
        lines = "".join(f"{key}: {_scalar(value)}\n" for key, value in entries.items())
        return (f"---\n{lines}---\n\n" if lines else "") + _with_arguments(command, arguments)

    return render


def toml(command: Command) -> str:
    """Return a TOML file with `description` and `prompt`. A command's text never contains three quotes in a row."""
    prompt = _with_arguments(command, "{{args}}")
    return f"description = {_text(command.description)}\nprompt = '''\n{prompt}'''\n"


def skill(command: Command) -> str:
    """Return a skill's `SKILL.md`, which has no field for arguments."""
    name = f"{PREFIX}{command.name}"
    words = f"{command.description}. Only when the user asks for {name}."
    head = f"---\nname: {name}\ndescription: {_scalar(words)}\n---\n\n"
    return head + _with_arguments(command, _ALL)


def _with_arguments(command: Command, place: str) -> str:
    return command.body.replace("$ARGUMENTS", place)


def _scalar(text: str) -> str:
    return _text(text) if re.search(r"""[:#\[\]{}"'<>]""", text) else text


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


_PLAIN = markdown(arguments=_ALL)
_COPILOT_CLI = Host("copilot", ".agents/skills", ".agents/skills", skill, file="{}/SKILL.md", typed="/{}")
_DESCRIBED = markdown("description", arguments=_ALL)

HOSTS: tuple[Host, ...] = (
    Host("claude", ".claude/commands", ".claude/commands",
         markdown("description", "argument-hint", "allowed-tools"), variable="CLAUDE_CONFIG_DIR"),
    Host("codex", ".agents/skills", ".agents/skills", skill, file="{}/SKILL.md", typed="${}"),
    Host("gemini", ".gemini/commands", ".gemini/commands", toml, file="{}.toml"),
    Host("opencode", ".opencode/commands", ".config/opencode/commands", markdown("description"),
         variable="XDG_CONFIG_HOME"),
    Host("copilot", ".github/prompts", None,
         markdown("description", "argument-hint", arguments=_ALL, more={"agent": "agent"}), file="{}.prompt.md",
         also=(_COPILOT_CLI,)),
    Host("cursor", ".cursor/commands", ".cursor/commands", _PLAIN),
    Host("windsurf", ".windsurf/workflows", ".codeium/windsurf/global_workflows", _DESCRIBED),
    Host("qwen", ".qwen/commands", ".qwen/commands", markdown("description", "argument-hint", arguments="{{args}}")),
)  # fmt: skip
BY_NAME = {host.name: host for host in HOSTS}


def path(host: Host, command: str) -> str:
    """Return the path of a command's file in the host's folder."""
    return host.file.format(f"{PREFIX}{command}")


def is_named_like_ours(host: Host, file: str) -> bool:
    """Whether a file name in a host's folder has the form that `path` returns."""
    before, _, after = host.file.partition("{}")
    return file.startswith(f"{before}{PREFIX}") and file.endswith(after) and file.count("/") == host.file.count("/")


def read(name: str, text: str) -> Command:
    """Parse a command of `commands/`. Raises ValueError if it has no frontmatter or no description."""
    head, closed, body = text.removeprefix("---\n").partition("\n---\n")
    frontmatter = {}
    for line in head.split("\n"):
        key, _, value = line.partition(": ")
        frontmatter[key] = json.loads(value) if value.startswith('"') else value
    if not text.startswith("---\n") or not closed or not frontmatter.get("description"):
        raise ValueError(f"commands/{name}.md has no frontmatter with a description")
    get = frontmatter.get
    return Command(
        name, frontmatter["description"], get("argument-hint", ""), get("allowed-tools", ""), body.lstrip("\n")
    )


def installed(host: Host, command: Command, version: str) -> str:
    """Return the whole file, with a line that records the version and a digest of the content."""
    text = host.form(command)
    mark = f"idumb:installed {version} sha256:{text_digest(text)}"
    return f"{text}# {mark}\n" if host.form is toml else f"{text}<!-- {mark} -->\n"


def is_unchanged(text: str) -> bool:
    """Whether a file is as some version of idumb wrote it."""
    digests = _MARK.findall(text)
    return len(digests) == 1 and text_digest(_MARK.sub("", text)) == digests[0]


def is_marked(text: str) -> bool:
    """Whether idumb wrote a file, even if it was changed since."""
    return _MARK.search(text) is not None
