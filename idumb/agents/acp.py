"""Runs any agent that speaks the Agent Client Protocol: starts it per request, watches it, ends all it started."""

from __future__ import annotations

import contextlib
import functools
import json
import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from idumb import __version__
from idumb.agents import answers, failure_words, known_agent
from idumb.agents.acp_client import Client, ToolCall
from idumb.agents.adapter import Equipment
from idumb.agents.answers import Ending
from idumb.agents.known_agent import ROWS, KnownProgram
from idumb.agents.program import HOME, HOMES, last_words, of_process
from idumb.agents.workspace_files import FileProblem, WorkspaceFiles
from idumb.app.ports import Hear
from idumb.domain import agent, failures, outcome, paths, wording
from idumb.domain.agent import BUILDER, VALIDATOR, AgentRequest, AgentResult, StepRecord, Usage
from idumb.domain.settings import Binding
from idumb.system import child_process

_NO_COMMANDS = "Run no commands: a wish to run one is refused. Read and edit with your tools for files."
_WRITES = frozenset({"edit", "delete", "move"})
_HARMLESS = frozenset({"read", "search", "think"})
_STOPS: Mapping[str, Ending] = {
    "end_turn": Ending(outcome.COMPLETED),
    "max_tokens": Ending(outcome.FAILED, "its context window is full", agent.CONTEXT_EXHAUSTED),
    "max_turn_requests": Ending(outcome.FAILED, "it reached its limit of model requests without finishing"),
    "refusal": Ending(outcome.FAILED, "it declined", agent.DECLINED),
    "cancelled": Ending(outcome.FAILED, "it reported that it was cancelled"),
}


class AcpAgent(KnownProgram):
    """Starts an agent of `known_agent.ROWS` or the binding's own `argv` for each request, and speaks the protocol."""

    options = MappingProxyType({"mode": str, "shell": (True, False), HOME: HOMES})

    def __init__(self, binding: Binding, equipment: Equipment) -> None:
        self._commands = binding.options.get("shell") is True
        self._row = ROWS.get(binding.adapter, known_agent.OTHER)
        super().__init__(binding, equipment, self._row)

    def _run(self, request: AgentRequest, hear: Hear | None) -> AgentResult:
        transcript = self._transcript(request)
        client = Client(
            request.workspace,
            _prompt(request, commands=self._commands),
            functools.partial(self._refused, request),
            __version__,
            self._binding.options.get("mode"),
            None if self._row.model_at_start else request.model or self._binding.model,
            transcript.line,
        )
        if request.role == BUILDER:
            self._make_folders(request)
        with self._inputs(request) as inputs:
            finished = self._launched(request, inputs, hear, {}, talk=client)
        return self._result(request, client, finished, transcript.close())

    def _make_folders(self, request: AgentRequest) -> None:
        """Create the folders of declared files: Copilot cannot write into a missing folder.

        Git keeps no empty folder. A link is not followed: the agent then reports why it cannot write.
        """
        with WorkspaceFiles(request.workspace) as files:
            for path in request.allowed_paths:
                if not paths.has_wildcard(path) and "/" in path:
                    with contextlib.suppress(FileProblem):
                        files.make_folder(os.path.dirname(path))

    def _refused(self, request: AgentRequest, call: ToolCall) -> str:
        """Return why a tool call is refused, or ""."""
        if (call.writes or call.kind in _WRITES) and (why := _refusal(request, call.paths)):
            return why
        if call.kind == "execute":
            why = "commands are not allowed, because idumb cannot know which files they write"
            return "" if self._commands else why
        return "" if call.kind in _HARMLESS | _WRITES else f"{call.kind} is not allowed"

    def _result(
        self, request: AgentRequest, client: Client, finished: child_process.Finished, transcript: str | None
    ) -> AgentResult:
        process = of_process(finished)
        if client.over and not finished.timed_out:  # how it ends after its answer says nothing
            process |= {"cause": None, "crashed": False}
        reply = self._redact(client.reply)
        errors = finished.errors.text(self._redact) if finished.errors is not None else ""
        ended, message, failure = self._ending(client, finished, last_words(errors))
        if request.role == VALIDATOR and ended == outcome.COMPLETED:
            ended, message, failure = answers.judged(client.reply)
        vetoed = [call for call in client.calls.values() if call.allowed is False]
        if vetoed and ended == outcome.COMPLETED and request.role == BUILDER:
            message = f"vetoed: {wording.listed(c.title or c.kind for c in vetoed)}"
        return AgentResult(
            outcome=ended,
            message=self._redact(message),
            claimed_files=tuple(p for c in client.calls.values() if c.writes or c.kind in _WRITES for p in c.paths),
            session=client.session,
            usage=usage_of(client.used),
            transcript=transcript,
            output=wording.truncate(reply or errors),
            steps=tuple(self._record(i, call) for i, call in enumerate(client.calls.values())),
            failure=failure,
            reply=reply,
            model=client.model if client.used or client.stop is not None else None,
            **process,
        )

    def _ending(self, client: Client, finished: child_process.Finished, last: str) -> Ending:
        """Judge by the answer, or by the exit if the process ended early.

        What an agent says when it is stopped is not its end.
        """
        if finished.timed_out:
            return Ending(outcome.TIMED_OUT, finished.words(), agent.STALL)
        error, kind, said = client.error, failure_words.of_error(client.problem), answers.one_line(client.reply)
        if self._row.error and client.last_chunk.startswith(self._row.error) and "outputTokens" not in client.used:
            error, kind = answers.one_line(client.last_chunk), failure_words.of_words(client.last_chunk)
        if client.stop is not None and (client.stop != "end_turn" or kind is None):
            end = _STOPS.get(client.stop, Ending(outcome.FAILED, f"it stopped: {client.stop}", agent.MALFORMED))
            words = failures.AND_SAID.join(filter(None, (end.message, said)))
            return end._replace(message=words) if end.message else end
        unknown = agent.MISSING if client.session is None else agent.MALFORMED
        if error is None:
            words = finished.words() or f"exit {finished.exit_code}"
            message = f"{words} before its answer was complete" + (f": {last}" if last else "")
            kind = failure_words.of_words(last.rpartition("\n")[2])
            return answers.failed(message, kind or unknown)
        if client.refuses_model and kind != agent.NOT_LOGGED_IN:
            kind = agent.UNKNOWN_MODEL
        return answers.failed(error, kind or unknown)

    def _record(self, index: int, call: ToolCall) -> StepRecord:
        permission = {True: "allowed", False: f"vetoed: {call.why}", None: "did not ask"}[call.allowed]
        return StepRecord(
            index=index,
            tool=f"acp:{call.kind}",
            intent=self._redact(call.title[:200]),
            arguments={"paths": [self._redact(path) for path in call.paths]},
            ok=call.allowed is not False and call.status != "failed",
            response=self._redact(permission),
            words=self._redact(f"{call.status or 'unknown'}, {permission}"),
        )


def _prompt(request: AgentRequest, *, commands: bool) -> str:
    """Return the prompt with the rules stated first, because some agents stop at a veto."""
    prompt = request.prompt if commands else f"{request.prompt}\n\n{_NO_COMMANDS}"
    if request.schema is None:
        return prompt
    return f"{prompt}\n\nAnswer with one JSON object of this JSON Schema:\n{json.dumps(dict(request.schema))}"


def _refusal(request: AgentRequest, wished: Sequence[str]) -> str:
    """Return why these paths must not be written; a request without a path is refused."""
    if request.role != BUILDER:
        return f"a {request.role} must not write files"
    if not wished:
        return "it does not name a file"
    root = os.path.realpath(request.workspace)
    for path in wished:
        whole = os.path.join(root, path)
        entry_path = os.path.join(os.path.realpath(os.path.dirname(whole)), os.path.basename(whole))
        # A write to a link changes its target, so both must be declared.
        for real in dict.fromkeys((entry_path, os.path.realpath(whole))):
            why = _wrong(request, path, os.path.relpath(real, root))
            if why:
                return why
    return ""


def _wrong(request: AgentRequest, path: str, inside: str) -> str:
    """Return why `inside`, the target of `path`, must not be written, or ""."""
    if inside.startswith("../") or inside == ".." or paths.problem(inside) is not None:
        return f"{path} is outside the working tree"
    if not paths.matches_any(inside, request.allowed_paths):
        return f"{inside} is not a file of this task"
    rule = paths.protecting_rule(inside, request.protected, frozenset(request.allowed_paths))
    return f"{inside} is protected by {rule}" if rule is not None else ""


def usage_of(used: Mapping[str, object]) -> Usage:
    """Return the reported usage; a cost in another currency is unknown."""
    cost = used.get("cost")
    dollars = cost.get("amount") if isinstance(cost, Mapping) and cost.get("currency") == "USD" else None
    return answers.usage(used, dollars)
