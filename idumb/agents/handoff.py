"""Hands work to an agent or a person elsewhere: one file describes the work, another contains the answer.

Nothing is kept in memory. The name of a handoff begins with a digest of the request, so a waiting task finds the same
handoff again and an attempt with new feedback creates a new one. It ends with an unpredictable ticket, so that a
builder cannot answer in place of its judge in advance. Persons who answer a question or work in
an editor that drives idumb need no file.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Struct

from idumb.agents import answers, model_tools
from idumb.agents.adapter import Adapter, Equipment, Redact
from idumb.agents.workspace_files import FileProblem, WorkspaceFiles
from idumb.domain import canonical_json, contract, outcome, replies, wording
from idumb.domain.action import REFUSE
from idumb.domain.agent import BUILDER, BUILT_IN, VALIDATOR, AgentRequest, AgentResult
from idumb.domain.errors import AdapterError
from idumb.domain.paths import is_below
from idumb.domain.settings import Binding

LAST_LINE = "END OF ANSWER"
_LARGEST = 16 * 1024 * 1024
_LONGEST_WAIT = 365 * 24 * 3600
_TICK = 0.5  # seconds between polls
_DONE, _FAILED = "done", "failed"


class HandoffAgent(Adapter):
    """Puts handoffs into the equipment's folder, unless the binding names another."""

    options = MappingProxyType({"folder": str, "wait": int})

    def describe(self) -> Sequence[str]:
        """Check the options without starting anything. Raises AdapterError."""
        options = self._binding.options
        self._require_options()
        folder, wait = options.get("folder"), options.get("wait", 0)
        if not 0 <= wait <= _LONGEST_WAIT:
            raise self._bad_option("requires `wait` to be a number of seconds, at most one year")
        usable = folder is None or (folder.startswith("/") and "\0" not in folder)
        if not usable or (folder and is_below(*map(os.path.realpath, (folder, self._equipment.repository)))):
            raise self._bad_option("requires `folder` to be an absolute path outside the repository, where tasks write")
        return ()

    def question(self, request: AgentRequest) -> str:
        """Return the same session for the same question until it is answered, so that no answer is used twice.

        Waiting creates attempts, so attempt numbers do not count.
        """
        parts: list[object] = [request.role, request.subject, request.prompt]
        if (task := request.task) is not None:
            work = (contract.task_digest(task), request.feedback, request.settled, request.candidate)
            parts = [request.run_id, request.role, request.subject, *work]
        safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in request.subject)
        return f"{safe}-{request.role}-{canonical_json.digest(parts)[:12]}"

    def ticket(self) -> str:
        """Return a new, unpredictable ticket."""
        return secrets.token_hex(8)

    def run(self, request: AgentRequest) -> AgentResult:
        began = time.monotonic()
        try:
            self.describe()
            folder = self._binding.options.get("folder") or self._equipment.handoffs
            if not request.ticket:
                raise self._bad_option("received a request without a ticket")
            place = _Handoff(str(folder), self.question(request), request.ticket)
            place.write_request(_document(request, place, self._redact))
        except (AdapterError, OSError, FileProblem) as problem:
            return AgentResult(outcome.ERRORED, str(problem))
        answer = self._awaited(place, request, began)
        if isinstance(answer, str):
            words = f"waiting for an answer to {place.request}"
            return AgentResult(outcome.WAITING, f"{words} ({answer})" if answer else words, session=place.name)
        return self._taken(request, place, answer)

    def _awaited(self, place: _Handoff, request: AgentRequest, began: float) -> _Answer | str:
        """Return the answer, or why there is none yet; "" if none was written."""
        times = [float(self._binding.options.get("wait", 0)), request.deadline]
        until = began + min(t for t in times if t is not None)
        while True:
            answer = place.read_answer()
            remaining = until - time.monotonic()
            if isinstance(answer, _Answer) or remaining <= 0:
                return answer
            time.sleep(min(_TICK, remaining))

    def _taken(self, request: AgentRequest, place: _Handoff, answer: _Answer) -> AgentResult:
        text = self._redact(answer.text)
        failure: str | None = None
        work = model_tools.ModelTools(request, self._redact, self._equipment.guard, self._equipment.apply_patch)
        with contextlib.closing(work):
            if answer.outcome == _FAILED:
                ended, message = outcome.FAILED, text.strip() or "the answer reports a failure"
            elif request.role == BUILDER:
                ended, message = _edited(work, answer.text)
            else:
                ended, message, failure = answers.ending(request.role, answer.text)
        return AgentResult(
            outcome=ended,
            message=self._redact(message),
            claimed_files=tuple(work.touched),
            session=place.name,
            output=wording.truncate(text),
            steps=tuple(work.records),
            failure=failure,
            reply=text,
        )


def _edited(work: model_tools.ModelTools, text: str) -> tuple[str, str]:
    """Apply the fenced patches and edit lists of an answer in order; the first failure ends it."""
    number = 0
    for kind, body in replies.fenced(text):
        for name, arguments in _calls(kind, body):
            number += 1
            succeeded, words = work.call(name, arguments)
            if not succeeded:
                return outcome.FAILED, f"edit {number} of the answer ({name}): {words}"
    return outcome.COMPLETED, "" if number else "the answer holds no edits"


def _calls(kind: str, body: str) -> list[tuple[str, Mapping[str, object]]]:
    if kind in {"diff", "patch"}:
        return [("apply_patch", {"patch": body, "intent": "the answer's patch"})]
    try:
        edits = msgspec.json.decode(body, type=_Edits).edits if kind == "json" else ()
    except (msgspec.MsgspecError, RecursionError):  # it quotes other JSON
        return []
    return [(str(edit.get("tool")), {k: v for k, v in edit.items() if k != "tool"}) for edit in edits]


class _Edits(Struct):
    edits: tuple[dict[str, Any], ...] = ()


class _Answer(Struct, frozen=True):
    outcome: str
    text: str


class _Handoff:
    """The two files of one handoff."""

    def __init__(self, folder: str, question: str, ticket: str) -> None:
        self._folder = folder
        self.name = name = f"{question}-{ticket}"
        self.request = os.path.join(folder, f"{name}.md")
        self.answer = os.path.join(folder, f"{name}.answer.md")

    def write_request(self, text: str) -> None:
        """Write the request unless it already exists."""
        os.makedirs(self._folder, 0o700, exist_ok=True)
        data = text.encode("utf-8", "surrogateescape")
        with WorkspaceFiles(self._folder) as files:
            if not os.path.lexists(self.request) or files.read(os.path.basename(self.request)) != data:
                files.write(os.path.basename(self.request), data, 0o600)

    def read_answer(self) -> _Answer | str:
        """Return the answer, else why it is unusable, or "" if there is none."""
        if not os.path.lexists(self.answer):
            return ""
        try:
            with WorkspaceFiles(self._folder) as files:
                data, size = files.beginning(os.path.basename(self.answer), _LARGEST)
            text = data.decode("utf-8")
        except FileProblem as problem:
            return str(problem)
        except UnicodeDecodeError:
            return "it is not valid UTF-8"
        return _parsed(text, self.name) if size <= _LARGEST else f"it is larger than {_LARGEST} bytes"


def _parsed(text: str, name: str) -> _Answer | str:
    """Parse an answer: a header between two `---` lines, any text, and the line that marks it complete."""
    lines = text.strip().splitlines()
    if not lines or lines[0].strip() != "---" or "---" not in [line.strip() for line in lines[1:]]:
        return "it does not begin with a header between two `---` lines"
    if lines[-1].strip() != LAST_LINE:
        return f"it does not end with the line {LAST_LINE}, so it may be incomplete"
    end = next(i for i, line in enumerate(lines) if i and line.strip() == "---")
    head = dict(map(_pair, lines[1:end]))
    if head.get("handoff") != name or head.get("outcome") not in {_DONE, _FAILED}:
        return f"its header must contain `handoff: {name}`, and `outcome: {_DONE}` or `outcome: {_FAILED}`"
    return _Answer(head["outcome"], "\n".join(lines[end + 1 : -1]) + "\n")


def _pair(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.strip(), value.split(" #")[0].strip().strip("\"'")


def _document(request: AgentRequest, place: _Handoff, redact: Redact) -> str:
    head = (
        f"---\ntype: handoff\nhandoff: {place.name}\nrun: {json.dumps(request.run_id)}\n"
        f"subject: {json.dumps(request.subject)}\nrole: {request.role}\nanswer: {os.path.basename(place.answer)}\n---\n"
    )
    files = model_tools.declared_files(request, redact) if request.role == BUILDER else ""
    shown = f"\n## The files as they are\n\n{files}\n" if files else ""
    return f"{head}\n{redact(request.prompt).rstrip()}\n{shown}\n## How to answer\n\n{_how(request, place)}"


_BUILD = """\
You are elsewhere: nothing you change in a copy of your own counts. Put the change into the answer, as a git patch in
a fence that begins with ```diff, or as a list in a fence that begins with ```json:
{"edits": [{"tool": "write_file", "path": "...", "content": "...", "intent": "..."}]}, with the tools write_file,
edit_file (path, find, replace), delete_file (path) and move_file (from, to). Only the declared files can be changed.
"""
_JUDGE = """\
Put the verdict into the answer, in a fence that begins with ```json:
{"verdict": "PASS", "evidence": [{"criterion": "AC-1", "file": "path", "line": 1}], "findings": []}
"""


def _how(request: AgentRequest, place: _Handoff) -> str:
    special = {BUILDER: _BUILD, VALIDATOR: _JUDGE}.get(request.role, "")
    schema = f"The answer is JSON of this schema: {json.dumps(dict(request.schema))}\n" if request.schema else ""
    return (
        f"{special}{schema}Write the file `{os.path.basename(place.answer)}` beside this one. It begins with these"
        f" lines, and its last line is `{LAST_LINE}`:\n\n"
        f"    ---\n    type: answer\n    handoff: {place.name}\n    outcome: {_DONE}\n    ---\n\n"
        f"`outcome` is `{_DONE}`, or `{_FAILED}` with the reason below. What you say is a claim; idumb looks at the"
        " bytes and runs the checks.\n"
    )


class HumanAgent(Adapter):
    """Waits for the answer to the question of the request; `idumb` asks it, and the request carries the answer then.

    For an editor, nothing is asked: `idumb start` opens its attempt, and `idumb submit` brings in the work.
    """

    def __init__(self, binding: Binding, equipment: Equipment) -> None:
        super().__init__(binding, equipment)
        self.capabilities = BUILT_IN[binding.adapter]

    def run(self, request: AgentRequest) -> AgentResult:
        """Return the outcome of the answer: a choice that refuses fails, as what is none; any other completes."""
        question, answer = request.question, request.answer
        if question is None:
            return AgentResult(outcome.ERRORED, f"{request.subject} has no question for a person")
        if answer is None:
            return AgentResult(outcome.WAITING, f"waiting for a decision: {question.what}")
        accepts = any(choice.id == answer.choice and choice.move != REFUSE for choice in question.choices)
        words = f"{answer.by} chose {answer.choice}" + (f": {answer.guidance}" if answer.guidance else "")
        return AgentResult(outcome.COMPLETED if accepts else outcome.FAILED, words, answer=answer)
