"""Drives models of any provider that pydantic-ai knows (the extra `models`), with validated answers.

The library is loaded when the first request is sent. The model reads and edits with a few declared tools; its edits
are made by the code that runs the steps of plans.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.util
import inspect
import ipaddress
import json
import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from idumb.agents import answers, failure_words, model_tools
from idumb.agents.adapter import Adapter, Equipment
from idumb.agents.answers import Ending
from idumb.agents.model_tools import ModelTools
from idumb.domain import agent, outcome, wording
from idumb.domain.agent import BUILDER, AgentRequest, AgentResult, Capabilities, Readiness, Usage
from idumb.domain.errors import AdapterError
from idumb.domain.settings import Binding

_TOOL, _NATIVE, _PROMPTED = "tool", "native", "prompted"
_OF_ENVIRONMENT = "environment"
_PACKAGE = "pydantic_ai"
_RESPONSES = ("openai:", "openai-responses:")
_UNREADABLE = frozenset({agent.NETWORK, agent.MALFORMED})
_CONNECT = 30.0  # seconds
_STOPPED: Mapping[str, tuple[str, str]] = {
    "content_filter": ("the model declined", agent.DECLINED),
    "length": ("the answer reached its maximum length", agent.CONTEXT_EXHAUSTED),
}
_BUILDER_RULES = """\
You have no terminal and no hands but the tools you are offered: read what you need, and change files by calls of the \
tools alone. Only the declared files can be changed. When the work is done, or cannot be done, answer without a call, \
in a few sentences."""
_READER_RULES = "You change nothing. Read what you need with the tools you are offered before you answer."


class _Options(Struct, frozen=True):
    """`names` are models with their provider, such as `anthropic:some-model`; later names are fallbacks.

    `given` are the options of the binding.
    """

    names: tuple[str, ...]
    base_url: str | None
    key: str | None
    given: Mapping[str, Any]

    @property
    def output(self) -> str:
        return str(self.given.get("output", _TOOL))


class _EndedError(Exception):
    """A conversation ends without an answer."""

    def __init__(self, ending: Ending) -> None:
        super().__init__(ending.message)
        self.ending = ending


class ModelAgent(Adapter):
    """Asks `binding.model`. It sees only the binding's own variables, of which one is the key."""

    options = MappingProxyType(
        {
            **dict.fromkeys(("base_url", "key"), str),
            "plain_http": (True, False),
            "proxy": (_OF_ENVIRONMENT,),
            "turns": int,
            "parameters": Mapping,
            "fallback": tuple,
            "output": (_TOOL, _NATIVE, _PROMPTED),
        }
    )
    capabilities = Capabilities(sandboxed=True)

    def __init__(self, binding: Binding, equipment: Equipment) -> None:
        super().__init__(binding, equipment)
        self._environment = equipment.environment(binding.environment)

    def describe(self) -> Sequence[str]:
        """Check the package, the options and the key without sending a request. Raises AdapterError."""
        self._options(None)
        return ()

    def ready(self) -> Readiness:
        options = self._options(None)
        return Readiness(options.names[0], logged_in=None if options.key is None else True, how="with a key")

    def run(self, request: AgentRequest) -> AgentResult:
        try:
            options = self._options(request.model)
        except AdapterError as problem:
            return agent.unusable(problem)
        importlib.import_module(f"{_PACKAGE}.models.fallback")  # it takes a second or more, which are not the model's
        began = time.monotonic()
        until = None if request.deadline is None else began + request.deadline
        transcript = self._transcript(request)
        tell = transcript.line
        work = ModelTools(request, self._redact, self._equipment.guard, until=until, tell=tell)
        conversation = _Conversation(options, request, work)
        with contextlib.closing(work):
            ended = conversation.run()
        tell(f"says: {conversation.reply}" if conversation.reply else f"{ended.outcome}: {ended.message}")
        reply = self._redact(conversation.reply)
        return AgentResult(
            outcome=ended.outcome,
            message=self._redact(ended.message),
            claimed_files=tuple(work.touched),
            usage=conversation.usage,
            transcript=transcript.close(),
            output=wording.truncate(reply),
            steps=tuple(work.records),
            seconds=time.monotonic() - began,
            cause="model-stall" if ended.failure == agent.STALL else None,
            failure=ended.failure,
            reply=reply,
            model=conversation.model,
        )

    def _options(self, model: str | None) -> _Options:
        """Return the checked options; `model` is the model of a request. Raises AdapterError."""
        self._require_options()
        given = self._binding.options
        if importlib.util.find_spec(_PACKAGE) is None:
            raise AdapterError(
                "agent.no-package",
                "Adapter model requires pydantic-ai, which is not installed.",
                hint="Run `pip install 'idumb[models]'`.",
            )
        names = (model or self._binding.model or "", *map(str, given.get("fallback", ())))
        if not all(name.partition(":")[2] for name in names):
            raise self._bad_option("needs a provider with each model, such as anthropic:some-model")
        address = str(given.get("base_url", ""))
        if address:
            _require_safe(address, plain=given.get("plain_http") is True)
        return _Options(names, address or None, self._key(), given)

    def _key(self) -> str | None:
        """Return the value of the key's variable; None if the configuration names none."""
        variables = self._binding.environment
        name = str(self._binding.options.get("key", "")) or next(iter(variables), "")
        if not name:
            return None
        if name not in variables:
            raise self._bad_option(f"names the key {name}, which its `environment` does not")
        value = self._environment.get(name, "").strip()
        if not value or not value.isascii() or not value.isprintable():
            words = f"{name} is not set." if not value else f"{name} contains characters that are not valid in a key."
            raise AdapterError("agent.no-key", words, hint=f"Run `export {name}=...`, then retry.")
        return value


class _Conversation:
    """One conversation: a request of the engine, and as many requests to the model as its tools need."""

    def __init__(self, options: _Options, request: AgentRequest, work: ModelTools) -> None:
        self.usage = Usage()
        self.model: str | None = None
        self.reply = ""
        self._options = options
        self._request = request
        self._work = work
        self._counted: Any = None
        self._clients: list[Any] = []
        self._turn = 0

    def run(self) -> Ending:
        try:
            return asyncio.run(asyncio.wait_for(self._closing(), self._request.deadline))
        except TimeoutError:
            return Ending(outcome.TIMED_OUT, "the model did not answer in time", agent.STALL)
        except AdapterError as problem:
            return answers.failed(problem.message, agent.MISSING)

    async def _closing(self) -> Ending:
        """Return the end, and close the connections, because a run sends many requests."""
        try:
            answer = await self._answer()
            self.reply = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
            return answers.ending(self._request.role, self.reply)
        except _EndedError as early:
            ending, options = early.ending, self._options
            if options.base_url and options.names[0].startswith(_RESPONSES) and ending.failure in _UNREADABLE:
                return ending._replace(message=f"{ending.message}; for Chat Completions write openai-chat:NAME")
            return ending
        finally:
            counted = self._counted
            if counted is not None and (counted.input_tokens or counted.output_tokens):  # else the usage is unknown
                self.usage = Usage(answers.count(counted.input_tokens), answers.count(counted.output_tokens))
            for client in self._clients:
                await client.close()

    async def _answer(self) -> Any:
        """Return the model's answer. Raises _EndedError for everything else."""
        from pydantic_ai import Agent, exceptions
        from pydantic_ai.usage import RunUsage, UsageLimits

        role = self._request.role
        settings = {
            "temperature": 0,
            "timeout": self._request.idle_timeout,
            **self._options.given.get("parameters", {}),
        }
        who = Agent(
            self._model(),
            output_type=self._output(),
            instructions=_BUILDER_RULES if role == BUILDER else _READER_RULES,
            tools=[self._tool(name) for name in model_tools.offered(role)],
            model_settings={name: value for name, value in settings.items() if value is not None},
            retries=2,
        )
        self._counted = RunUsage()
        limits = UsageLimits(
            request_limit=self._options.given.get("turns", 50), total_tokens_limit=self._request.budget.tokens
        )
        try:
            result = await who.run(self._request.prompt, usage=self._counted, usage_limits=limits)
        except exceptions.FallbackExceptionGroup as group:
            raise _EndedError(_failed(group.exceptions[-1])) from None
        except (exceptions.AgentRunError, exceptions.UserError) as problem:
            raise _EndedError(_failed(problem)) from None
        except (AttributeError, TypeError, ValueError, LookupError) as problem:
            # The library assumes that a server's response is valid.
            words = f"the server's response is invalid ({type(problem).__name__})"
            raise _EndedError(answers.failed(words, agent.MALFORMED)) from None
        self.model = next((m.model_name for m in reversed(result.all_messages()) if hasattr(m, "model_name")), None)
        stopped = _STOPPED.get(result.response.finish_reason or "")
        if stopped is not None:
            raise _EndedError(answers.failed(*stopped))
        # From plain text the library takes the first fenced object, which may be a quotation.
        return result.output if self._options.output == _TOOL else result.response.text or result.output

    def _output(self) -> Any:
        from pydantic_ai import NativeOutput, PromptedOutput, StructuredDict, ToolOutput

        schema = answers.schema_of(self._request)
        if schema is None:
            return str
        form = StructuredDict(dict(schema), name="reply")
        return {_TOOL: ToolOutput, _NATIVE: NativeOutput, _PROMPTED: PromptedOutput}[self._options.output](form)

    def _tool(self, name: str) -> Any:
        from pydantic_ai import Tool

        async def call(**arguments: Any) -> str:
            return self._called(name, arguments)

        return Tool.from_schema(call, name, model_tools.description(name), model_tools.schema(name), sequential=True)

    def _called(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Return the result of a tool call. Raises _EndedError if the time limit expired."""
        if self._work.is_late():  # the event loop's clock does not advance between consecutive calls
            late = "the time limit expired before its tool calls ran"
            raise _EndedError(Ending(outcome.TIMED_OUT, late, agent.STALL))
        if self._counted.requests != self._turn:
            self._turn = self._counted.requests
            self._work.tell(f"{self._counted.total_tokens} tokens so far")
        succeeded, words = self._work.call(name, arguments)
        return words if succeeded else f"error: {words}"

    def _model(self) -> Any:
        from pydantic_ai.models import infer_model
        from pydantic_ai.models.fallback import FallbackModel

        try:
            models = [infer_model(name, self._provider) for name in self._options.names]
        except (ImportError, ValueError, RuntimeError) as problem:
            raise AdapterError("agent.bad-model", f"{', '.join(self._options.names)}: {problem}") from None
        return models[0] if len(models) == 1 else FallbackModel(*models)

    def _provider(self, name: str) -> Any:
        """Return a provider with the binding's key and address.

        Where it uses the client of OpenAI or Anthropic, nothing is retried or redirected, and proxies of the
        environment are used only if the options allow them.
        """
        import httpx2
        from pydantic_ai.providers import infer_provider_class

        kind = infer_provider_class(name)
        accepted = inspect.signature(kind).parameters
        values: dict[str, Any] = {"api_key": self._options.key or "none", "base_url": self._options.base_url}
        ours = not {"openai_client", "anthropic_client"}.isdisjoint(accepted)
        if ours:
            timeout = httpx2.Timeout(self._request.deadline, connect=_CONNECT)
            values["http_client"] = httpx2.AsyncClient(
                trust_env="proxy" in self._options.given, follow_redirects=False, timeout=timeout
            )
        provider: Any = kind(**{key: value for key, value in values.items() if key in accepted and value is not None})
        if ours:
            provider.client.max_retries = 0
            self._clients.append(provider.client)
        return provider


def _failed(problem: BaseException) -> Ending:
    """Translate an error of the library."""
    from pydantic_ai import exceptions

    words = answers.one_line(str(problem), 400)
    if isinstance(problem, exceptions.ModelHTTPError):
        response = getattr(problem.__cause__, "response", None)
        after = answers.text(response.headers.get("retry-after")) if response is not None else ""
        return _refused(problem.status_code, problem.body, after)
    kind: str | None = agent.MISSING
    if isinstance(problem, exceptions.UsageLimitExceeded):
        # Endless tool calls are a failure of the work; a configured ceiling needs a decision by the user.
        kind = None if "request_limit" in words else agent.OVER_BUDGET
    elif isinstance(problem, exceptions.ContentFilterError):
        kind = agent.DECLINED
    elif isinstance(problem, exceptions.UnexpectedModelBehavior):
        kind = agent.CONTEXT_EXHAUSTED if "token limit" in words else agent.MALFORMED
    elif isinstance(problem, exceptions.ModelAPIError):
        if "Timeout" in type(problem.__cause__).__name__:
            return Ending(outcome.TIMED_OUT, "the server was silent for too long", agent.STALL)
        kind = agent.MALFORMED if failure_words.of_words(words) == agent.MALFORMED else agent.NETWORK
    return answers.failed(words, kind)


def _refused(status: int, body: Any, retry_after: str) -> Ending:
    """Translate a response with a status other than 200."""
    error = answers.one_line(failure_words.message(body), 300)
    words = f"the server answered {status}" + (f": {error}" if error else "")
    kind = failure_words.of_status(status, error, failure_words.code(body))
    if kind == agent.RATE_LIMITED and retry_after:
        words += f"; retry after {retry_after[:40]}{' s' if retry_after.isdigit() else ''}"
    elif kind == agent.MISSING:
        words += "; check base_url (no redirect is followed) and model (for Chat Completions write openai-chat:NAME)"
    return answers.failed(words, kind)


def _require_safe(address: str, *, plain: bool) -> None:
    """Raise AdapterError unless this is the address of a server that may see keys and prompts."""
    try:
        parts = urlsplit(address)
        sound = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound or any(c.isspace() or not c.isprintable() for c in address) or {*"@?#"} & {*address}:
        hint = "Write it as https://host/v1, and list the variable that holds the key under `environment`."
        raise AdapterError("agent.bad-address", "`base_url` is not the bare address of a server.", hint=hint)
    if parts.scheme == "http" and not plain and not _is_loopback(parts.hostname or ""):
        raise AdapterError(
            "agent.plain-http",
            f"{parts.scheme}://{parts.netloc} does not use https, so others could read prompts and keys in transit.",
            hint="Use https. On a network that you trust, set `plain_http: true` under options.",
        )


def _is_loopback(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"
