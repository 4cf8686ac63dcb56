"""Drives models of many providers through pydantic-ai (the extra `models`), with validated answers.

The library is loaded when the first request is sent. As builder the model uses the same tools as with `http`.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
from collections.abc import Mapping, Sequence
from typing import Any

from idumb.agents import answers
from idumb.agents.model_server import Answer, Endpoint
from idumb.agents.models import model_tools
from idumb.agents.models.conversation import Ended, ModelAdapter, Talk, refused
from idumb.domain import agent, outcome
from idumb.domain.agent import BUILDER, AgentRequest, Capabilities, Usage
from idumb.domain.errors import AdapterError
from idumb.lazy_dataclass import dataclass
from idumb.system.processes import child_process

_KNOWN = ("base_url", "key", "plain_http", "proxy", "turns", "parameters", "model", "fallback", "output")
_OUTPUTS = ("tool", "native", "prompted")
_OPENAI = frozenset({"openai", "openai-chat", "openai-responses"})
_RESPONSES = frozenset({"openai", "openai-responses"})
_OF_SERVER = frozenset({agent.MISSING, agent.NETWORK, agent.MALFORMED})
_ANTHROPIC = "anthropic"
_OF_ENVIRONMENT = "environment"
_PROXIES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY")
_PACKAGE = "pydantic_ai"
_BUILDER_RULES = "You have no hands but the tools you are offered. Only the declared files can be changed."
_READER_RULES = "You change nothing. Read what you need with the tools you are offered before you answer."


@dataclass(frozen=True, slots=True)
class _Options:
    """`names` are models with their provider, such as `anthropic:some-model`; later names are fallbacks.

    `proxies`: use the proxies that the environment names.
    """

    names: tuple[str, ...]
    base_url: str | None
    key: str | None
    turns: int
    output: str
    parameters: Mapping[str, Any]
    proxies: bool


def _proxy_variables() -> tuple[str, ...]:
    """Return the variables that name a proxy, as they are spelled."""
    names = tuple(each for name in _PROXIES for each in (name, name.lower()))
    values = child_process.environment(names)
    return tuple(name for name in names if values.get(name))


class ModelAgent(ModelAdapter):
    """Asks `binding.model`."""

    name = "model"
    capabilities = Capabilities(sandboxed=True)

    def _options(self, model: str | None) -> _Options:
        """Check the package, too."""
        self._require_known(_KNOWN)
        if importlib.util.find_spec(_PACKAGE) is None:
            raise AdapterError(
                "agent.no-package",
                "Adapter model requires pydantic-ai, which is not installed.",
                hint="Run `pip install 'idumb[models]'`, or use the adapter http, which needs no library.",
            )
        first = model or self._binding.model or self._option("model", str, "")
        names = (first, *map(str, self._option("fallback", list, [])))
        if not all(name.partition(":")[2] for name in names):
            raise self._wrong("model", "must name a provider and a model", "Write it as provider:model.")
        address = self._option("base_url", str, "")
        if address:
            Endpoint(address, plain=self._option("plain_http", bool, default=False))
        output = self._option("output", str, _OUTPUTS[0])
        if output not in _OUTPUTS:
            raise self._wrong("output", f"must be one of {', '.join(_OUTPUTS)}")
        return _Options(
            names,
            address or None,
            self._key(),
            self._option("turns", int, 50),
            output,
            self._option("parameters", dict, {}),
            self._proxies(names),
        )

    def _proxies(self, names: Sequence[str]) -> bool:
        """Return whether to use the environment's proxies.

        Raises AdapterError if the library would use one without consent.
        """
        proxy = self._option("proxy", str, "")
        if proxy not in {"", _OF_ENVIRONMENT}:
            raise self._wrong(
                "proxy", f"must be {_OF_ENVIRONMENT}", "To name a proxy by its address, use the adapter http."
            )
        others = [name for name in names if name.partition(":")[0] not in {*_OPENAI, _ANTHROPIC}]
        variables = _proxy_variables()
        if others and variables and not proxy:
            proxies = ", ".join(variables)
            unset = f"Run `unset {' '.join(variables)}`."
            raise AdapterError(
                "agent.proxy",
                f"The environment sets a proxy ({proxies}), and requests to {others[0]} would go through it.",
                hint=f"{unset} To use the proxy, set `proxy: {_OF_ENVIRONMENT}` under options.",
            )
        return bool(proxy)

    def _talk(self, request: AgentRequest, until: float | None) -> Talk:
        return _Talk(self._options(request.model), request, self._tools(request, until))


class _Talk(Talk):
    def __init__(self, options: _Options, request: AgentRequest, work: model_tools.ModelTools) -> None:
        super().__init__(request, work)
        self._options = options
        self._counted: Any = None
        self._clients: list[Any] = []
        self._calls = (0, 0)  # the turn, and the number of calls in it

    def converse(self) -> Ended:
        try:
            answer = asyncio.run(asyncio.wait_for(self._closing(), self.request.deadline))
        except TimeoutError:
            return Ended(outcome.TIMED_OUT, "the model did not answer in time", failure=agent.STALL)
        except AdapterError as problem:
            return Ended(outcome.ERRORED, problem.message, failure=agent.MISSING)
        except Ended as early:
            return self._with_interface(early)
        if not isinstance(answer, str):
            answer = json.dumps(answer, ensure_ascii=False)
        return self.ended_with(answer)

    def _with_interface(self, ended: Ended) -> Ended:
        """Add a hint: `openai:` uses the Responses API, which many compatible servers do not support."""
        name = self._options.names[0]
        provider, _, model = name.partition(":")
        if self._options.base_url is None or provider not in _RESPONSES or ended.failure not in _OF_SERVER:
            return ended
        words = f"{name} uses the Responses API; for a server that supports only Chat Completions, use"
        return Ended(ended.outcome, f"{ended.message}; {words} openai-chat:{model}", failure=ended.failure)

    async def _closing(self) -> Any:
        """Return the answer and close the connections, because a run sends many requests."""
        try:
            return await self._run()
        finally:
            self._count()
            for client in self._clients:
                await client.close()

    def _count(self) -> None:
        """Record the usage; it stays unknown if nothing was counted."""
        counted = self._counted
        if counted is not None and (counted.input_tokens or counted.output_tokens):
            self.usage = Usage(answers.count(counted.input_tokens), answers.count(counted.output_tokens))

    async def _run(self) -> Any:
        from pydantic_ai import Agent, exceptions
        from pydantic_ai.usage import RunUsage, UsageLimits

        role = self.request.role
        who = Agent(
            self._model(),
            output_type=self._output(),
            instructions=_BUILDER_RULES if role == BUILDER else _READER_RULES,
            tools=[self._tool(name) for name in model_tools.offered(role)],
            model_settings={"temperature": 0, **self._options.parameters},
            retries=2,
        )
        self._counted = RunUsage()
        limits = UsageLimits(request_limit=self._options.turns, total_tokens_limit=self.request.budget.tokens)
        try:
            result = await who.run(self.request.prompt, usage=self._counted, usage_limits=limits)
        except exceptions.FallbackExceptionGroup as group:
            raise _failed(group.exceptions[-1]) from None
        except (exceptions.AgentRunError, exceptions.UserError) as problem:
            raise _failed(problem) from None
        except (AttributeError, TypeError, ValueError, LookupError) as problem:
            # The library assumes that a server's response is valid.
            words = f"the server's response is invalid ({type(problem).__name__})"
            raise Ended(outcome.FAILED, words, failure=agent.MALFORMED) from None
        self.model = next((m.model_name for m in reversed(result.all_messages()) if hasattr(m, "model_name")), None)
        # From plain text the library takes the first fenced object, which may be a quotation.
        return result.output if self._options.output == _OUTPUTS[0] else result.response.text or result.output

    def _output(self) -> Any:
        from pydantic_ai import NativeOutput, PromptedOutput, StructuredDict, ToolOutput

        if self.schema is None:
            return str
        form = StructuredDict(dict(self.schema), name="reply")
        return {"tool": ToolOutput, "native": NativeOutput, "prompted": PromptedOutput}[self._options.output](form)

    def _tool(self, name: str) -> Any:
        from pydantic_ai import Tool

        async def call(**arguments: Any) -> str:
            return self._called(name, arguments)

        return Tool.from_schema(call, name, model_tools.description(name), model_tools.schema(name), sequential=True)

    def _called(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Return the result of a tool call. Raises Ended if the time limit expired or one turn makes too many calls."""
        # The event loop's clock does not advance between consecutive calls.
        self.require_time()
        turn = self._counted.requests
        self._calls = (turn, self._calls[1] + 1 if self._calls[0] == turn else 1)
        if self._calls[1] > model_tools.MOST_CALLS:
            words = f"it made more than {model_tools.MOST_CALLS} tool calls in one turn"
            raise Ended(outcome.FAILED, words)
        succeeded, words = self.work.call(name, arguments)
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

        It does not retry or follow redirects. It uses the environment's proxies only if the options allow them.
        """
        from pydantic_ai.providers import infer_provider_class

        key, address = self._options.key or "none", self._options.base_url
        if name in _OPENAI:
            import openai

            http = openai.DefaultAsyncHttpxClient(trust_env=self._options.proxies, follow_redirects=False)
            openai_client = openai.AsyncOpenAI(api_key=key, base_url=address, max_retries=0, http_client=http)
            self._clients.append(openai_client)
            return infer_provider_class(name)(openai_client=openai_client)
        if name == _ANTHROPIC:
            import anthropic

            own = anthropic.DefaultAsyncHttpxClient(trust_env=self._options.proxies, follow_redirects=False)
            client = anthropic.AsyncAnthropic(api_key=key, base_url=address, max_retries=0, http_client=own)
            self._clients.append(client)
            return infer_provider_class(name)(anthropic_client=client)
        more = {"base_url": address} if address else {}
        return infer_provider_class(name)(api_key=key, **more)


def _failed(problem: BaseException) -> Ended:
    """Translate an error of the library."""
    from pydantic_ai import exceptions

    words = " ".join(str(problem).split())[:400]
    if isinstance(problem, exceptions.ModelHTTPError):
        body = problem.body if isinstance(problem.body, str) else json.dumps(problem.body, default=str)
        return refused(Answer(problem.status_code, {}, body.encode("utf-8", "replace")))
    if isinstance(problem, exceptions.UsageLimitExceeded):
        # Endless tool calls are a failure of the work; a configured ceiling needs a decision by the user.
        return Ended(outcome.FAILED, words, failure=None if "request_limit" in words else agent.OVER_BUDGET)
    if isinstance(problem, exceptions.ContentFilterError):
        return Ended(outcome.FAILED, words, failure=agent.DECLINED)
    if isinstance(problem, exceptions.UnexpectedModelBehavior):
        return Ended(outcome.FAILED, words, failure=agent.MALFORMED)
    if isinstance(problem, exceptions.ModelAPIError):
        return Ended(outcome.ERRORED, words, failure=agent.NETWORK)
    return Ended(outcome.ERRORED, words, failure=agent.MISSING)
