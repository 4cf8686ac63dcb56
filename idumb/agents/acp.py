"""Runs any agent that speaks the Agent Client Protocol: starts it per request, watches it, ends all it started."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from idumb import __version__
from idumb.agents import answers, failure_words
from idumb.agents.acp_client import AUTH_REQUIRED, Call, Client, PermissionRequest
from idumb.agents.adapter import Equipment
from idumb.agents.program import (
    HOME,
    HOMES,
    OWN_HOME,
    ProgramAgent,
    Transcript,
    home_variables,
    last_words,
    make_home,
    with_request,
)
from idumb.domain import agent, outcome, paths, wording
from idumb.domain.agent import BUILDER, VALIDATOR, AgentRequest, AgentResult, Capabilities, StepRecord, Usage
from idumb.domain.errors import AdapterError
from idumb.domain.settings import Binding
from idumb.system.processes import child_process

_NO_COMMANDS = "Run no commands: a wish to run one is refused. Read and edit with your tools for files."
_REJECT, _ALLOW = "reject", "allow"
_OPTIONS = ("mode", "commands", HOME)
_LOGIN = "name its key in the binding's `environment`, or log in with the agent itself and set `home: user`"
_WRITES = frozenset({"edit", "delete", "move"})
_HARMLESS = frozenset({"read", "search", "think"})
_STOPS: Mapping[str, tuple[str, str, str | None]] = {
    "end_turn": (outcome.COMPLETED, "", None),
    "max_tokens": (outcome.FAILED, "its context window is full", agent.CONTEXT_EXHAUSTED),
    "max_turn_requests": (outcome.FAILED, "it reached its limit of model requests without finishing", None),
    "refusal": (outcome.FAILED, "it declined", agent.DECLINED),
    "cancelled": (outcome.FAILED, "it reported that it was cancelled", None),
}
_OF_THE_WORK = frozenset({agent.MALFORMED, agent.CONTEXT_EXHAUSTED, agent.DECLINED})


class AcpAgent(ProgramAgent):
    """Starts `binding.argv` for each request and speaks the protocol."""

    name = "acp"
    capabilities = Capabilities(sandboxed=True)

    def __init__(self, binding: Binding, equipment: Equipment) -> None:
        super().__init__(binding, equipment)
        self.version = self._version(lambda: self.describe()[0])

    def describe(self) -> Sequence[str]:
        """Return the argument list with the program as an absolute path. Raises AdapterError if it is unusable."""
        argv, options = self._binding.argv, self._binding.options
        self._require_options(options, _OPTIONS)
        mode, commands = options.get("mode"), options.get("commands", _REJECT)
        # A tuple, because lists and mappings have no hash.
        wrong = commands not in (_REJECT, _ALLOW) or options.get(HOME, OWN_HOME) not in HOMES
        if not argv or wrong or not isinstance(mode, str | None):
            raise self._bad_option("needs `argv`; `commands` is reject or allow, `home` own or user, and `mode` a name")
        return self._argv()

    def run(self, request: AgentRequest) -> AgentResult:
        try:
            argv = self.describe()
        except AdapterError as problem:
            return agent.unusable(problem)
        prompt = _prompt(request, commands=self._commands)
        mode = self._binding.options.get("mode")
        model = request.model or self._binding.model
        client = Client(request.workspace, prompt, self._permits(request), __version__, mode, model)
        transcript = self._transcript(request)
        try:
            finished = self._talk(argv, request, client, transcript)
        except OSError as problem:
            return self._not_started(argv, problem)
        except AdapterError as problem:
            return agent.unusable(problem)
        kept = transcript.close() if transcript else None
        return self._result(request, client, finished, kept)

    def _talk(
        self, argv: Sequence[str], request: AgentRequest, client: Client, transcript: Transcript | None
    ) -> child_process.Finished:
        """Run the agent. Raises OSError if the program or its home cannot be set up."""
        with self._inputs(request) as inputs:
            environment = with_request(self._environment, request)
            home = self._home(request, inputs.folder)
            if home is not None:
                make_home(home)
                environment |= home_variables(home)
            own = () if home is None else (home,)
            return self._start(
                argv, request, environment, inputs.folder, *own, separate_errors=True, sink=transcript, talk=client
            )

    @property
    def _commands(self) -> bool:
        return bool(self._binding.options.get("commands", _REJECT) == _ALLOW)

    def _permits(self, request: AgentRequest) -> Callable[[PermissionRequest], str]:
        """Return why a permission request is refused, or ""."""
        commands = self._commands

        def permits(permission: PermissionRequest) -> str:
            why = _refusal(request, permission.paths) if permission.writes or permission.kind in _WRITES else ""
            if why or permission.kind in _WRITES:
                return why
            if permission.kind == "execute":
                return "" if commands else "commands are not allowed, because idumb cannot know which files they write"
            return "" if permission.kind in _HARMLESS else f"{permission.kind} is not allowed"

        return permits

    def _result(
        self, request: AgentRequest, client: Client, finished: child_process.Finished, transcript: str | None
    ) -> AgentResult:
        reply = self._redact(client.reply)
        errors = finished.errors.text(self._redact) if finished.errors is not None else ""
        ended, message, failure = _ending(client, finished, last_words(errors))
        if request.role == VALIDATOR and ended == outcome.COMPLETED:
            ended, message, failure = answers.judged(client.reply)
        vetoed = [call for call in client.calls.values() if call.allowed is False]
        if vetoed and ended == outcome.COMPLETED and request.role == BUILDER:
            message = f"{message} (vetoed: {wording.listed(c.title or c.kind for c in vetoed)})".strip()
        return AgentResult(
            outcome=ended,
            message=self._redact(message),
            claimed_files=tuple(p for c in client.calls.values() if c.writes or c.kind in _WRITES for p in c.paths),
            session=client.session,
            usage=usage_of(client.used),
            transcript=transcript,
            exit_code=finished.exit_code,
            output=answers.shortened(reply or errors),
            output_sha256=finished.output.sha256,
            truncated=finished.output.truncated,
            steps=tuple(self._record(i, call) for i, call in enumerate(client.calls.values())),
            seconds=finished.seconds,
            cause=finished.cause if finished.timed_out or not client.over else None,
            crashed=finished.crashed and not client.over,
            sandbox=finished.sandbox,
            failure=failure,
            reply=reply,
            model=client.model if client.used or client.stop is not None else None,
        )

    def _record(self, index: int, call: Call) -> StepRecord:
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
    import json

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


def _ending(client: Client, finished: child_process.Finished, last: str) -> tuple[str, str, str | None]:
    """Return (outcome, message, kind of failure) from the answer, or from the exit if the process ended early.

    What an agent says when it is stopped is not its end.
    """
    if finished.timed_out:
        return outcome.TIMED_OUT, finished.words(), agent.STALL
    if client.stop is not None:
        return _STOPS.get(client.stop, (outcome.FAILED, f"it stopped: {client.stop}", agent.MALFORMED))
    if client.error is not None:
        message = client.error
        if client.code == AUTH_REQUIRED:
            return outcome.ERRORED, f"{message}; {_LOGIN}", agent.NOT_LOGGED_IN
        kind = agent.UNKNOWN_MODEL if client.refuses_model else failure_words.of_words(message) or agent.MALFORMED
        if kind == agent.UNKNOWN_MODEL:
            accepted = answers.described_models(answers.plain_ids(client.offered))
            return outcome.ERRORED, f"{message}; {accepted}", agent.UNKNOWN_MODEL
        ended = outcome.FAILED if kind in _OF_THE_WORK else outcome.ERRORED
        return ended, message, kind
    words = finished.words() or f"exit {finished.exit_code}"
    message = f"{words} before its answer was complete" + (f": {last}" if last else "")
    return outcome.ERRORED, message, agent.MALFORMED


def usage_of(used: Mapping[str, object]) -> Usage:
    """Return the reported usage; impossible amounts are unknown."""

    def number(*names: str) -> int | None:
        return answers.count(next((used[name] for name in names if name in used), None))

    cost = used.get("cost")
    amount = cost.get("amount") if isinstance(cost, Mapping) and cost.get("currency") == "USD" else None
    # Tokens read from and written to a cache are reported separately from other input.
    parts = (number("inputTokens", "input_tokens"), number("cachedReadTokens"), number("cachedWriteTokens"))
    return Usage(answers.total(*parts), number("outputTokens", "output_tokens"), answers.amount(amount))
