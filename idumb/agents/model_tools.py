"""The tools for models without tools of their own: reading, and edits made by the code that runs steps.

Edits are checked against the declared and protected files at the call; the engine judges the resulting bytes anyway.
Secret and ignored files are not shown: names are judged here, and secrets inside other files are redacted.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import time
from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any

from idumb.agents.adapter import ApplyPatch, Redact
from idumb.agents.steps import Reply, ToolCalls, content, in_short, record, touched_by
from idumb.agents.workspace_files import FileProblem, WorkspaceFiles
from idumb.domain import outcome, paths, replies
from idumb.domain.agent import BUILDER, AgentRequest, StepRecord
from idumb.domain.plans.plan import Step
from idumb.system.redaction import MARK

MOST_READ = 200_000  # bytes of one file
MOST_LISTED = 2000  # names of files
MOST_TOLD = 8 * 1024 * 1024  # characters that all calls of one request return together
MOST_EDITS = 2000
_MARGIN = 32 * 1024  # read in addition, so that a secret at the end of the shown part is recognised as one
_TEXT = {"type": "string"}
_INTENT = {"intent": {**_TEXT, "description": "why, in one short sentence"}}

# name: (what it does, its arguments, whether it writes)
_TOOLS: Mapping[str, tuple[str, Mapping[str, Any], bool]] = {
    "list_files": ("Names of the files of the project.", {"glob": {**_TEXT, "description": "such as src/**"}}, False),
    "read_file": ("The text of one file.", {"path": _TEXT}, False),
    "write_file": ("Make or replace one file.", {"path": _TEXT, "content": _TEXT, **_INTENT}, True),
    "edit_file": (
        "Replace a text that stands exactly once in a file.",
        {"path": _TEXT, "find": _TEXT, "replace": _TEXT, **_INTENT},
        True,
    ),
    "delete_file": ("Remove one file.", {"path": _TEXT, **_INTENT}, True),
    "move_file": ("Give one file another name.", {"from": _TEXT, "to": _TEXT, **_INTENT}, True),
}
_PATCH = "apply_patch"
_MARKED = (
    "is a placeholder for a secret and must not be written; in a file that contains secrets or such a text, use"
    " edit_file to change the text around them"
)
_LOST = "so the rest would be lost. To change a part, use edit_file. To replace everything, use delete_file first"
EDITS = tuple(name for name, (_, _, writes) in _TOOLS.items() if writes)
_FOLDERS = frozenset({".git", ".ssh", ".gnupg", ".aws", ".azure", ".kube", "gcloud"})
_PATHS = (".docker/config.json", ".config/gh/hosts.yml", ".cargo/credentials", ".m2/settings.xml")
_NAMES = frozenset(
    """
    .env .envrc .dev.vars .netrc _netrc .authinfo .npmrc .yarnrc .yarnrc.yml .pypirc .pgpass pgpass.conf .my.cnf
    .mylogin.cnf .git-credentials .htpasswd .dockercfg .dockerconfigjson .boto .s3cfg .vault-token .vault_pass
    .terraformrc terraform.rc kubeconfig credentials secrets auth.json wp-config.php local.settings.json
    """.split()  # noqa: SIM905 - a list of a name a line would be forty lines
)
_FORMS = re.compile(
    r"""
      \.env\..* | .*\.env                                                       # settings of many tools
    | id_(rsa|dsa|ecdsa|ed25519).*                                              # keys of OpenSSH
    | .*\.(pem|key|ppk|p12|pfx|jks|keystore|kdbx|kubeconfig|gpg)                # keys and stores of keys
    | .*\.tfvars(\.json)? | .*\.tfstate(\..*)?                                  # Terraform
    | (.*[-_.])?(secrets?|credentials?|service[-_]account)([-_.].*)?\.(json|ya?ml|toml|ini|txt|properties|xml|cfg|conf)
    """,
    re.VERBOSE,
)


def offered(role: str) -> tuple[str, ...]:
    """Return the names of a role's tools: builders edit, everyone reads."""
    return tuple(name for name, (_, _, writes) in _TOOLS.items() if role == BUILDER or not writes)


def description(name: str) -> str:
    return _TOOLS[name][0]


def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of a tool's arguments."""
    return replies.object_of("glob", **_TOOLS[name][1])


class ModelTools:
    """The tools of one request. `guard` raises if this process must not write; call `close` at the end.

    With `apply_patch` a builder may also send a git patch. No call runs after `until`, on the monotonic clock. `tell`
    gets a short line for each call.
    """

    def __init__(
        self,
        request: AgentRequest,
        redact: Redact,
        guard: Callable[[], None] = lambda: None,
        apply_patch: ApplyPatch | None = None,
        *,
        until: float | None = None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._request = request
        self._until = until
        self.tell = tell
        self._shown_characters = 0
        self._redact = redact
        self._guard = guard
        self._files = WorkspaceFiles(request.workspace)
        self._hidden = Hidden(request)
        self._edits = ToolCalls(self._files, request, apply_patch)
        patches = (_PATCH,) if apply_patch is not None and request.role == BUILDER else ()
        self._offered = frozenset((*offered(request.role), *patches))
        self._own: set[str] = set()
        self.records: list[StepRecord] = []
        self.touched: dict[str, None] = {}

    def close(self) -> None:
        self._files.close()

    def is_late(self) -> bool:
        return self._until is not None and time.monotonic() >= self._until

    def call(self, name: str, arguments: Mapping[str, Any]) -> tuple[bool, str]:
        """Make one call. Return whether it succeeded, and the message for the model."""
        if name not in self._offered:
            return False, f"unknown tool {name}; tools: {', '.join(sorted(self._offered))}"
        edits = name in {*EDITS, _PATCH}
        why = self._over(edits=edits)
        if why is not None:
            return False, why
        self._guard()
        reply = self._edit(name, arguments) if edits else self._look(name, arguments)
        words = reply.text
        self.tell(in_short(Step(0, name, "", arguments), reply))
        if name != "read_file" or reply.outcome != outcome.COMPLETED:
            words = self._redact(words)
        self._shown_characters += len(words)
        return reply.outcome == outcome.COMPLETED, words

    def _over(self, *, edits: bool) -> str | None:
        """Return why no more calls are possible, or None."""
        if self.is_late():
            return "the time limit of this task expired"
        if edits and len(self.records) >= MOST_EDITS:
            return f"{MOST_EDITS} edits were already requested, which is the limit"
        if not edits and self._shown_characters > MOST_TOLD:
            return f"{MOST_TOLD} characters were already shown, which is the limit"
        return None

    def _edit(self, name: str, arguments: Mapping[str, Any]) -> Reply:
        values = {key: value for key, value in arguments.items() if key != "intent"}
        intent = str(arguments.get("intent") or "")
        step = Step(len(self.records), name, intent, values, scope=self._request.allowed_paths)
        began = time.monotonic()
        outside = [p for p in touched_by(step) if not paths.matches_any(p, self._request.allowed_paths)]
        if outside or not self._request.allowed_paths:
            allowed = ", ".join(self._request.allowed_paths) or "none"
            reply = Reply(outcome.FAILED, f"{(*outside, 'it')[0]} is not a file of this task; its files are: {allowed}")
        elif (mark := _mark_in(step)) is not None:
            reply = Reply(outcome.FAILED, f"{mark} {_MARKED}")
        elif (why := self._would_lose(step) or self._would_show(step)) is not None:
            reply = Reply(outcome.FAILED, why)
        else:
            reply = self._edits.make(step)
        self.records.append(record(step, reply, time.monotonic() - began, self._redact))
        if reply.outcome == outcome.COMPLETED:
            self.touched.update(dict.fromkeys(touched_by(step)))
            self._own.update(touched_by(step) if name == "write_file" else ())
        return reply

    def _would_lose(self, step: Step) -> str | None:
        """Return why a file must not be replaced as a whole: a model that saw only a part would drop the rest."""
        path = str(step.arguments.get("path"))
        if step.tool != "write_file" or path in self._own:
            return None
        try:
            data, size = self._files.beginning(path, MOST_READ + 1)
        except FileProblem:
            return None  # the file does not exist, or the edit itself reports the problem
        why = _unshowable(data, size)
        return None if why is None else f"{path} cannot be replaced as a whole: {why}, {_LOST}"

    def _why_hidden(self, path: str) -> str | None:
        return self._hidden.why(path, self.touched)

    def _would_show(self, step: Step) -> str | None:
        """Return why a file must not be renamed: it would no longer be hidden under the new name."""
        source, target = (str(step.arguments.get(name)) for name in ("from", "to"))
        why = self._why_hidden(source) if step.tool == "move_file" else None
        return None if why is None or is_secret(target) else f"{source} {why}, so it cannot be moved to {target}"

    def _look(self, name: str, arguments: Mapping[str, Any]) -> Reply:
        if name == "list_files":
            glob = str(arguments.get("glob") or "**")
            listed = _listed(self._request.workspace, glob, self.is_late, self._why_hidden)
            names = list(itertools.islice(listed, MOST_LISTED + 1))
            more = [f"[more than {MOST_LISTED}]"] if len(names) > MOST_LISTED else []
            return Reply(outcome.COMPLETED, "\n".join([*names[:MOST_LISTED], *more]) or "no files")
        path = str(arguments.get("path"))
        why = paths.problem(path) or self._why_hidden(path)
        if why is not None:
            return Reply(outcome.FAILED, f"{path!r} {why}")
        try:
            return Reply(outcome.COMPLETED, _shown(self._files, path, self._redact))
        except FileProblem as problem:
            return Reply(outcome.FAILED, str(problem))


def _shown(files: WorkspaceFiles, path: str, redact: Redact) -> str:
    """Return the visible part of a file: its beginning, without secrets."""
    data, size = files.beginning(path, MOST_READ + _MARGIN)
    text = redact(data.decode("utf-8", "replace"))
    if size <= MOST_READ:
        return text
    # A secret that the read limit cuts in two is not recognised, so that end is never shown.
    beginning = text[:-_MARGIN] if size > len(data) else text
    return f"{beginning[:MOST_READ]}\n[only the beginning of {size} bytes is shown]"


def _unshowable(data: bytes, size: int) -> str | None:
    """Return why a file cannot be shown completely as text, or None."""
    if size > MOST_READ:
        return f"only the beginning of its {size} bytes can be shown"
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return "it is not entirely displayable UTF-8 text"
    return None


def _mark_in(step: Step) -> str | None:
    """Return a redaction mark that an edit would write: in place of a secret it would destroy it."""
    values = step.arguments
    added = str(values.get("replace", ""))
    if step.tool == _PATCH:
        added = "\n".join(line for line in str(values.get("patch")).split("\n") if line.startswith("+"))
    if step.tool == "write_file":
        with contextlib.suppress(FileProblem):  # the edit itself reports it
            added = content(values).decode("latin-1")
    return next(iter(MARK.findall(added)), None)


def declared_files(request: AgentRequest, redact: Redact) -> str:
    """Return the current, bounded texts of a task's files without secrets, for models without tools."""
    hidden = Hidden(request)
    parts: list[str] = []
    remaining = MOST_READ
    with WorkspaceFiles(request.workspace) as files:
        for path in hidden.declared:
            if paths.has_wildcard(path) or hidden.why(path):
                continue
            try:
                text = _shown(files, path, redact)
            except FileProblem:
                continue
            if len(text) > remaining:
                text = f"{text[:remaining]}\n[only a part of this file is shown]"
            remaining = max(0, remaining - len(text))
            parts.append(f"### {path}\n\n````\n{text}\n````")
    return "\n\n".join(parts)


def _listed(
    root: str, glob: str, is_late: Callable[[], bool], why_hidden: Callable[[str], str | None]
) -> Iterator[str]:
    """Yield file names below a folder, within the time limit. Links are not followed."""
    fits = paths.cover([glob])
    for folder, below, names in os.walk(root):
        if is_late():
            return
        below[:] = sorted(name for name in below if name not in {".git", "node_modules", "__pycache__"})
        for name in sorted(names):
            path = os.path.relpath(os.path.join(folder, name), root)
            if fits(path) and why_hidden(path) is None:
                yield path


def is_secret(path: str) -> bool:
    """Return whether a file of this name usually contains secrets, ignoring case."""
    *folders, name = path.casefold().split("/")
    inside = f"/{path.casefold()}".endswith(tuple(f"/{place}" for place in _PATHS))
    return inside or not _FOLDERS.isdisjoint((*folders, name)) or name in _NAMES or _FORMS.fullmatch(name) is not None


class Hidden:
    """The hidden files of one request. `declared` are the paths of its task."""

    def __init__(self, request: AgentRequest) -> None:
        self._request = request
        files = () if request.task is None else request.task.files or ()
        self.declared = tuple(dict.fromkeys(claim.path for claim in files))

    def why(self, path: str, created: Container[str] = ()) -> str | None:
        """Return why a file is hidden, as words that follow its path; None if it is shown.

        `created` are files that the model created: it sees them even if git ignores them.
        """
        if is_secret(path):
            return "may contain secrets and is not shown"
        if path not in self.declared and path not in created and self._request.is_ignored(path):
            return "is ignored by git and not named by the task, so it is not shown"
        return None
