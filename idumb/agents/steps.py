"""The agent that needs no model: it makes the tool calls that a task declares, in order."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from idumb.agents.adapter import Adapter, ApplyPatch, Equipment, Redact, Sandboxed, sandboxed
from idumb.agents.program import last_words, not_started, scratch, with_request
from idumb.agents.workspace_files import LARGEST, FileProblem, WorkspaceFiles
from idumb.domain import outcome, paths
from idumb.domain.agent import BUILT_IN, MISSING, STEPS, AgentRequest, AgentResult, StepRecord
from idumb.domain.errors import AdapterError
from idumb.domain.plans import step_effects
from idumb.domain.plans.plan import Step, Task
from idumb.domain.settings import Binding
from idumb.system import child_process

_PROGRAM = "run"
"""The tool that starts a program."""
LONGEST_ARGUMENT = 200
_NOT_STARTED: Mapping[int | None, str] = {126: "is not executable", 127: "was not found"}
"""Exit codes of a shell."""


class Reply(Struct, frozen=True):
    """The result of one tool call. `outcome` is one of `idumb.domain.outcome`, `text` the message for the user.

    `output` is the output of a process, bounded and without secrets; `printed` is its standard output alone, where a
    workflow needs it. `cause` is that of `AgentResult`.
    """

    outcome: str
    text: str
    output: str = ""
    cause: str | None = None
    printed: str | None = None


class StepsAgent(Adapter):
    """Runs `task.steps` in order. The first failure ends the attempt unless the step sets `continue_on_error`."""

    continues = False
    capabilities = BUILT_IN[STEPS]

    def __init__(self, binding: Binding, equipment: Equipment) -> None:
        super().__init__(binding, equipment)
        self._environment = equipment.environment(equipment.allowed)

    def run(self, request: AgentRequest) -> AgentResult:
        if request.task is None:
            return AgentResult(outcome.ERRORED, f"{request.subject} has no steps; role {request.role} needs an agent")
        with contextlib.ExitStack() as stack:
            try:
                launcher = self._launcher(request, request.task, stack)
                # Opened before a program can replace the folder.
                files = stack.enter_context(WorkspaceFiles(request.workspace))
            except (AdapterError, OSError) as problem:
                return AgentResult(outcome.ERRORED, str(problem), failure=MISSING)
            return self._make_calls(request, request.task, files, launcher)

    def _launcher(self, request: AgentRequest, task: Task, stack: contextlib.ExitStack) -> Sandboxed | None:
        """Open the sandbox of the programs that the steps start; None if none is configured or needed."""
        if not self._equipment.settings.sandboxed or all(step.tool != _PROGRAM for step in task.steps):
            return None
        own = stack.enter_context(scratch(self._equipment.inputs))
        return sandboxed(request, self._equipment, own, ())

    def _make_calls(
        self, request: AgentRequest, task: Task, files: WorkspaceFiles, launcher: Sandboxed | None
    ) -> AgentResult:
        started = time.monotonic()
        deadline = None if request.deadline is None else started + request.deadline
        records: list[StepRecord] = []
        touched: dict[str, None] = {}
        ended = Reply(outcome.COMPLETED, "")
        printed, transcript = "", self._transcript(request)
        programs = Programs(self._environment, self._redact, deadline, launcher)
        tools = ToolCalls(files, request, self._equipment.apply_patch, programs)
        try:
            for step in task.steps:
                began = time.monotonic()
                self._equipment.guard()
                reply = tools.make(step)
                records.append(record(step, reply, time.monotonic() - began, self._redact))
                touched.update(dict.fromkeys(touched_by(step)))
                transcript.line(in_short(step, reply))
                printed = printed if reply.printed is None else reply.printed
                if reply.outcome != outcome.COMPLETED and not (step.continue_on_error and not programs.is_late()):
                    ended = replace(reply, text=f"step {_title(step)}: {reply.text}")
                    break
        finally:
            path = transcript.close()
        return AgentResult(
            outcome=ended.outcome,
            transcript=path,
            message=self._redact(ended.text) if ended.text else "",
            claimed_files=tuple(touched),
            steps=tuple(records),
            seconds=time.monotonic() - started,
            cause=ended.cause,
            reply=printed,
            sandbox=launcher.level if launcher is not None else "",
        )


def record(step: Step, reply: Reply, seconds: float, redact: Redact) -> StepRecord:
    """Return the audit entry of one tool call. Output is redacted when it is captured."""
    words = redact(reply.text)
    return StepRecord(
        index=step.index,
        tool=step.tool,
        intent=step.intent,
        arguments={name: _short_value(value, redact) for name, value in step.arguments.items()},
        ok=reply.outcome == outcome.COMPLETED,
        response=reply.output or words,
        seconds=seconds,
        words=words,
    )


def in_short(step: Step, reply: Reply) -> str:
    """Return the line of a transcript about one tool call."""
    about = " ".join(touched_by(step)) or str(step.arguments.get("path") or step.arguments.get("command") or "")
    words = "" if reply.outcome == outcome.COMPLETED else f", {reply.text}"
    return f"{step.tool} {about}: {reply.outcome}{words}"


def _short_value(value: Any, redact: Redact) -> Any:
    """Return an argument for the audit: a long text as digest and size, a short one redacted."""
    if isinstance(value, str):
        data = value.encode("utf-8", "surrogatepass")
        if len(data) <= LONGEST_ARGUMENT:
            return redact(value)
        return {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    if isinstance(value, list | tuple):
        return [_short_value(item, redact) for item in value]
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def _title(step: Step) -> str:
    """Return `3 (edit_file src/x.py, line 40)`: counted from 1, with the line in the plan."""
    about = " ".join(p for p in (step.tool, *touched_by(step)[:1]) if p)
    return f"{step.index + 1} ({about}, line {step.line})" if step.line else f"{step.index + 1} ({about})"


def touched_by(step: Step) -> tuple[str, ...]:
    names = ("from", "to") if step.tool == "move_file" else ("path",)
    return tuple(value for name in names if isinstance(value := step.arguments.get(name), str))


class Programs(NamedTuple):
    """Starts the programs of steps, in the sandbox of `launcher` if there is one, until `deadline` (monotonic)."""

    environment: Mapping[str, str]
    redact: Redact
    deadline: float | None
    launcher: Sandboxed | None

    def is_late(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline

    def run(self, step: Step, request: AgentRequest) -> Reply:
        remaining = None if self.deadline is None else self.deadline - time.monotonic()
        declared = step.timeout or step.arguments.get("timeout")
        limits = [limit for limit in (remaining, declared) if limit is not None]
        argv, launcher = _argv(step), self.launcher
        first, confined = ((), {}) if launcher is None else (launcher.argv, launcher.variables)
        of_workflow = request.task is not None and request.task.flow is not None
        try:
            finished = child_process.run(
                (*first, *argv),
                cwd=request.workspace,
                environment={**with_request(self.environment, request), **confined},
                timeout=min(limits, default=None),
                idle_timeout=request.idle_timeout,
                limits=request.limits,
                separate_errors=of_workflow,
            )
        except OSError as problem:
            return Reply(outcome.ERRORED, not_started(argv, problem))
        # Redact before truncating: half a secret would not be recognised.
        output = finished.output.text(self.redact)
        printed = output if of_workflow else None
        if finished.errors is not None:
            output += finished.errors.text(self.redact)
        ended, words = _ending(argv, finished, step.arguments.get("expect_exit", 0))
        last = last_words(output) if ended != outcome.COMPLETED else ""
        return Reply(ended, f"{words}: {last}" if last else words, output, finished.cause, printed)


class ToolCalls:
    """Makes tool calls for one request: those that change files and, with `programs`, those that start one."""

    def __init__(
        self, files: WorkspaceFiles, request: AgentRequest, patch: ApplyPatch | None, programs: Programs | None = None
    ) -> None:
        self._files = files
        self._request = request
        self._declared = frozenset(request.allowed_paths)
        self._programs = programs
        self._tools: dict[str, Callable[[Step], Reply]] = {
            "write_file": self._write_file,
            "edit_file": self._edit_file,
            "delete_file": self._delete_file,
            "move_file": self._move_file,
            "make_directory": self._make_directory,
        }
        if patch is not None:
            self._tools["apply_patch"] = lambda step: self._patch(step, patch)
        if programs is not None:
            self._tools[_PROGRAM] = lambda step: programs.run(step, request)

    def make(self, step: Step) -> Reply:
        tool = self._tools.get(step.tool)
        if self._programs is not None and self._programs.is_late():
            return Reply(outcome.TIMED_OUT, "the time limit of the task expired before this step")
        if tool is None:
            return Reply(outcome.ERRORED, f"unknown tool {step.tool}; tools: {', '.join(self._tools)}")
        try:
            return tool(step)
        except FileProblem as problem:
            return Reply(outcome.FAILED, str(problem))

    def _path(self, step: Step, name: str = "path") -> str:
        path = _text(step, name)
        why = self._refusal(path, step.scope)
        if why is not None:
            raise FileProblem(f"{path!r} {why}")
        return path

    def _refusal(self, path: str, scope: Sequence[str] = ()) -> str | None:
        """Return why a path must not be written, or None."""
        problem = paths.problem(path)
        if problem is not None:
            return problem
        rule = paths.protecting_rule(path, self._request.protected, self._declared)
        if rule is not None:
            return f"is protected by {rule}"
        is_inside = not scope or paths.matches_any(path, scope)
        return None if is_inside else f"is outside the step's scope {', '.join(scope)}"

    def _write_file(self, step: Step) -> Reply:
        path = self._path(step)
        data = content(step.arguments)
        self._files.write(path, data, _mode(step.arguments.get("mode")))
        return Reply(outcome.COMPLETED, f"wrote {len(data)} bytes")

    def _edit_file(self, step: Step) -> Reply:
        path = self._path(step)
        find, replacement = encoded(_text(step, "find")), encoded(_text(step, "replace"))
        expected = step.arguments.get("count", 1)
        if not find:
            raise FileProblem("`find` is empty")
        data = self._files.read(path)
        matches = data.count(find)
        if matches != expected:
            raise FileProblem(f"found {matches} matches of {_short(find)}, expected {expected}")
        if len(data) + matches * (len(replacement) - len(find)) > LARGEST:
            raise FileProblem(f"{path} would be larger than {LARGEST} bytes")
        self._files.write(path, data.replace(find, replacement))
        return Reply(outcome.COMPLETED, f"replaced {matches}")

    def _patch(self, step: Step, patch: ApplyPatch) -> Reply:
        done, words = patch(_text(step, "patch"), lambda path: self._refusal(path, step.scope))
        return Reply(outcome.COMPLETED if done else outcome.FAILED, words)

    def _delete_file(self, step: Step) -> Reply:
        self._files.delete(self._path(step))
        return Reply(outcome.COMPLETED, "deleted")

    def _move_file(self, step: Step) -> Reply:
        self._files.move(self._path(step, "from"), self._path(step, "to"))
        return Reply(outcome.COMPLETED, "moved")

    def _make_directory(self, step: Step) -> Reply:
        self._files.make_folder(self._path(step))
        return Reply(outcome.COMPLETED, "made")


def _ending(argv: Sequence[str], finished: child_process.Finished, expected: int) -> tuple[str, str]:
    code = finished.exit_code
    if finished.timed_out:
        return outcome.TIMED_OUT, finished.words()
    if code == expected:
        return outcome.COMPLETED, f"exit {code}"
    if words := finished.words():
        return outcome.FAILED, words
    if code in _NOT_STARTED and argv[:2] == ["/bin/sh", "-c"]:
        return outcome.ERRORED, f"exit {code}: a program {_NOT_STARTED[code]}"
    return outcome.FAILED, f"exit {code}, expected {expected}"


def _argv(step: Step) -> list[str]:
    """Return the arguments of a `run` step. `command` is a fixed string for the shell; `argv` uses no shell."""
    argv = list(step.arguments.get("argv") or ("/bin/sh", "-c", _text(step, "command")))
    if any("\0" in part for part in argv):
        raise FileProblem("`argv` contains a NUL character")
    return argv


def _text(step: Step, name: str) -> str:
    value = step.arguments.get(name)
    if not isinstance(value, str):
        raise FileProblem(f"the argument `{name}` is missing" if value is None else f"`{name}` must be a string")
    return value


def content(arguments: Mapping[str, Any]) -> bytes:
    """Return the bytes that a `write_file` step writes."""
    if isinstance(arguments.get("content_base64"), str):
        try:
            return step_effects.written(arguments)
        except ValueError:
            raise FileProblem("`content_base64` is not base64") from None
    text = arguments.get("content")
    if not isinstance(text, str):
        raise FileProblem("write_file needs `content` or `content_base64`")
    return encoded(text)


def encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise FileProblem("the text contains half of a surrogate pair, which UTF-8 cannot encode") from None


def _mode(value: object) -> int | None:
    if value is None:
        return None
    text = f"{value:o}" if isinstance(value, int) and value in {0o644, 0o755} else str(value)
    if text.removeprefix("0") not in {"644", "755"}:
        raise FileProblem(f"mode must be 644 or 755, not {value!r}")
    return int(text, 8)


def _short(data: bytes) -> str:
    text = data.decode("utf-8", "backslashreplace")
    return repr(text if len(text) <= 60 else text[:60] + "...")
