"""A run of the engine on fakes: no git, no process, no file. What is in `EngineRun` outlives a killed process."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from idumb.agents.adapter import Equipment
from idumb.agents.handoff import HumanAgent
from idumb.app.core.journal import Journal
from idumb.app.core.run_context import RunContext, RunRequest
from idumb.app.core.services import Services
from idumb.app.engine import moves, runner
from idumb.domain import contract as contracts
from idumb.domain.action import Answer, Decision
from idumb.domain.agent import HUMAN, AgentRequest, AgentResult
from idumb.domain.errors import Interrupted
from idumb.domain.permissions import NO_POLICY
from idumb.domain.plans.plan import GUIDED, FileClaim, Plan, Task
from idumb.domain.plans.workflow import Workflow
from idumb.domain.runs.event import Event, NewEvent
from idumb.domain.runs.replay import replay
from idumb.domain.runs.run import Checkpoint, RunState
from idumb.domain.settings import Binding, Settings
from idumb.gates import registry
from tests.support import run_events
from tests.support.fixed_clock import FixedClock
from tests.support.memory_checks import MemoryChecks
from tests.support.memory_event_log import MemoryEventLog
from tests.support.memory_ownership import MemoryOwnership, MemoryWorktree
from tests.support.memory_repository import MemoryHistory, MemoryRepository, MemoryTrees
from tests.support.scripted_agent import ScriptedAgent

if TYPE_CHECKING:
    import pytest

Files = dict[str, bytes]
Work = Callable[[AgentRequest, Files], AgentResult | None]
RUN, PHASE, FOLDER = "r1", "1", ".planning/phases/01-work"
PLAN = b"the plan"


class Killed(BaseException):
    """The process ends here, as at a power cut: nothing of the program may catch it."""


def task(id: str, *needs: str, files: Sequence[str] | None = None, **fields: Any) -> Task:
    """Return a task that creates the file of its own name, or changes `files`, and is proven by their existence."""
    paths, verb = ([id], "create") if files is None else (files, "change")
    claims = tuple(FileClaim(verb, path) for path in paths)
    values = {"verify": tuple(f"test -f {path}" for path in paths), **fields}
    return Task(id, f"Make {id}", depends_on=needs, files=claims, **values)


class EngineRun:
    """One run. `work(request, files)` is what the builder does at each call; `calls` are the requests it received.

    `kill_at` ends the process before that durable effect, counted from 1; `effects` are those that happened. Programs
    work in a copy that each process makes.
    """

    def __init__(
        self,
        *tasks: Task,
        work: Work | None = None,
        mode: str = GUIDED,
        answers: Mapping[str, str] | None = None,
        settings: Settings | None = None,
        workflow: Workflow | None = None,
        plan: Mapping[str, Any] | None = None,
    ) -> None:
        self.repository = MemoryRepository(effect=self._effect)
        self.repository.files["README"] = b"hello"
        self.repository.commit_all("start")
        self.clock, self.worktree = FixedClock(), MemoryWorktree()
        self.log = _KillableLog(self.clock, self.worktree, self._effect)
        self.settings = settings or Settings(builder="builder", bindings={"builder": Binding("builder", "scripted")})
        self.work = work or make_own_files
        self.builder = ScriptedAgent(lambda request: self.work(request, self.place.files))
        self.copy, self.begun = self.repository.clone(), ""
        self.place = self.copy
        self.checks = MemoryChecks(self.place)
        self.interrupts = _Interrupts()
        self.asker = _Asker({} if answers is None else answers)
        self.notes: list[str] = []
        self.messages: tuple[str, ...] = ()
        self.effects: list[str] = []
        self.kill_at: int | None = None
        made = Plan(f"{FOLDER}/01-PLAN.md", hashlib.sha256(PLAN).hexdigest(), PHASE, "01", "A plan", "Done", mode=mode)
        made = replace(made, tasks=tasks, workflow=workflow, **(plan or {}))
        contract, findings = contracts.assemble(PHASE, FOLDER, [made], self.settings)
        assert contract is not None, findings
        self.contract = contract

    def _effect(self, name: str) -> None:
        if self.kill_at is not None and len(self.effects) + 1 >= self.kill_at:
            raise Killed
        self.effects.append(name)

    @property
    def calls(self) -> list[tuple[str, int]]:
        """The task and attempt of each call of the builder."""
        return [(request.subject, request.attempt) for request in self.builder.requests]

    @property
    def state(self) -> RunState:
        return replay(self.log.events(run=RUN))

    def status(self) -> dict[str, str]:
        return {id: task_state.status for id, task_state in self.state.tasks.items()}

    def events(self, *kinds: str) -> list[Event]:
        return [event for event in self.log.events(run=RUN) if event.kind in kinds]

    def commits(self) -> list[str]:
        """The tasks that were committed, oldest first."""
        trailers = MemoryHistory(self.repository).trailers_since(None)
        return [row["Idumb-Task"] for _, row in reversed(trailers)]

    @property
    def committed(self) -> Mapping[str, str]:
        """The blobs of the newest commit, by path."""
        return self.repository.trees[self.repository.commits[self.repository.head or ""].tree]

    def kept(self, id: str) -> Checkpoint:
        kept = self.state.tasks[id].checkpoint
        assert kept is not None
        return kept

    def answer(self, choice: str, guidance: str = "") -> EngineRun:
        """Answer all that the tasks wait for, in another process."""
        journal = self.process().journal
        for id, task_state in self.state.tasks.items():
            for question in task_state.decisions:
                journal.write(journal.answer_event(Answer(question, choice, "Pat", guidance), id))
        return self

    def process(self, **fields: Any) -> RunContext:
        """Start a process that owns the working tree; a killed process no longer owns it."""
        self.worktree.owner = None
        owner = MemoryOwnership(self.worktree)
        services = self._services(owner)
        fence = owner.acquire("idumb execute-phase 1")
        journal = Journal(
            cast("Any", self.log), services.reporter, operation=f"o{fence}", fence=fence, state=self.state
        )
        if not journal.state.id:
            journal.write(self._started(services))
        self.place = self.copy
        self.checks = MemoryChecks(self.place)
        place: Any = _Copy(self)
        place.keep()
        person = HumanAgent(Binding(HUMAN, HUMAN), Equipment(self.settings, "/workspace", _no_patch, str))
        agents = SimpleNamespace(get=lambda name: person if name == HUMAN else self.builder, forget=lambda: None)
        made: Any = services
        made.here, made.open_checkout = _Here(MemoryTrees(self.repository)), lambda: place
        made.open_proof = lambda: SimpleNamespace(renew=lambda: None, show=lambda *_: None, root="/workspace")
        made.open_agents, made.open_checks = lambda *_: agents, lambda *_: self.checks
        request = RunRequest("1", **{"max_attempts": 3, **fields})
        context = RunContext(services, journal, self.contract, place, made.open_checks(), request)
        context.locked.mark = "same.mark"  # nothing changed since the lock, and a strict plan is approved
        return context

    def run(self, **fields: Any) -> moves.Ending:
        """Recover and run in a new process."""
        context = self.process(**fields)
        moves.recover(context)
        moves.resolve_waiting(context)
        return runner.run_tasks(context)

    def run_until_killed(self, kill_at: int) -> bool:
        """Run until the process is killed before that effect; return False if it ended before."""
        self.kill_at = kill_at
        try:
            self.run()
        except Killed:
            return True
        finally:
            self.kill_at = None
        return False

    def _started(self, services: Services) -> NewEvent:
        head, contract = services.history.head(), self.contract
        payload = {
            **run_events.STARTED,
            "phase": PHASE,
            "folder": FOLDER,
            "contract_hash": contract.hash,
            "plans": [[plan.path, plan.sha256] for plan in contract.plans],
            "mode": contract.mode,
            "policy": self.settings.git.commit,
            "base_commit": head.commit,
            "base_tree": services.trees.scan(),
            "branch": head.branch,
            "tasks": [[id, contracts.task_digest(contract.tasks[id])] for id in contract.order],
        }
        return NewEvent("run.started", payload, run=RUN)

    def _services(self, owner: MemoryOwnership) -> Services:
        texts: dict[str, str] = {}
        services = SimpleNamespace(
            root="/workspace",
            start="/workspace",
            folder="",
            worktree="main",
            version="0",
            settings=self.settings,
            policy=NO_POLICY,
            present_settings=lambda: self.settings,
            present_policy=lambda: NO_POLICY,
            clock=self.clock,
            trees=MemoryTrees(self.repository),
            history=MemoryHistory(self.repository),
            log=self.log,
            owner=owner,
            consent=SimpleNamespace(mark=lambda: "mark"),
            saved_answers=SimpleNamespace(get=lambda _: None),
            plans=SimpleNamespace(plans=lambda _: ((f"{FOLDER}/01-PLAN.md", PLAN),)),
            named_files=SimpleNamespace(signature=lambda _: "same", programs=lambda _: {}, digests=lambda _: {}),
            toolchain=SimpleNamespace(files=lambda: (), versions=dict, template=lambda _: ""),
            redactor=SimpleNamespace(redact=str, redact_output=str, redacted=lambda _: {}, knows_secrets=lambda: False),
            files=SimpleNamespace(read=texts.get, write=texts.__setitem__, status=self.repository.files.get),
            documents=SimpleNamespace(
                checkpoint=lambda *_: "", progress=lambda *_: "", prompt=lambda asked: asked.feedback, handoff=str
            ),
            asker=self.asker,
            reporter=SimpleNamespace(note=self.notes.append, event=lambda _: None, begin=lambda *_: None),
            interrupts=self.interrupts,
            gates=registry.StepGates(),
        )
        return cast("Services", services)


def _no_patch(_: str, __: object) -> tuple[bool, str]:
    raise AssertionError("a person applies no patch")


def break_gate(patch: pytest.MonkeyPatch, name: str) -> None:
    """Let a gate raise an error once it has read the first changed file."""
    load = registry.StepGate.load

    def broken(inputs: Any) -> None:
        inputs.read(inputs.changes[0].new, 1000)
        raise KeyError("line")

    patch.setattr(registry.StepGate, "load", lambda gate: broken if gate.name == name else load(gate))


def make_own_files(request: AgentRequest, files: Files) -> None:
    """Write the task's name into each file that it declares."""
    for path in request.allowed_paths:
        files[path] = request.subject.encode()


def also(do: Callable[[AgentRequest, Files], Any]) -> Work:
    """Make the own files and do this; what it returns is the answer, if it is one."""

    def work(request: AgentRequest, files: Files) -> AgentResult | None:
        make_own_files(request, files)
        answer = do(request, files)
        return answer if isinstance(answer, AgentResult) else None

    return work


class _Here:
    """As a workspace: the files of the user."""

    in_place = True
    variables: Mapping[str, str] = {}

    def __init__(self, trees: MemoryTrees) -> None:
        self.trees = trees

    def checked_out(self, tree: str, paths: object, seen: object = ()) -> str:
        return tree

    def end(self) -> None:
        pass


class _Copy:
    """As a workspace: a copy of the repository's files."""

    in_place = False
    variables: Mapping[str, str] = {}

    def __init__(self, run: EngineRun) -> None:
        self.trees = MemoryTrees(run.copy)
        self._run, self._copy = run, run.copy

    def show(self, tree: str, head: str | None) -> None:
        ignored = {path: data for path, data in self._copy.files.items() if path in self._copy.ignored}
        self._copy.files.clear()
        self._copy.files.update(ignored)
        self._copy.files.update({path: self._copy.blobs[oid] for path, oid in self._copy.trees[tree].items()})

    def with_ignored(self, tree: str, paths: Iterable[str]) -> str:
        return self.trees.scan(paths)

    def checked_out(self, tree: str, paths: object, seen: object = ()) -> str:
        return tree

    def messages(self, head: str | None) -> tuple[str, ...]:
        return self._run.messages

    def begin(self, ref: str) -> None:
        self._run.begun = ref

    def keep(self) -> None:
        if self._run.begun:
            self.trees.snapshot(self._run.begun, "what an attempt left")
            self.end()

    def end(self) -> None:
        self._run.begun = ""


class _KillableLog(MemoryEventLog):
    def __init__(self, clock: FixedClock, worktree: MemoryWorktree, effect: Callable[[str], None]) -> None:
        super().__init__(clock, worktree)
        self._effect = effect

    def append(
        self, events: Sequence[NewEvent], *, operation: str, fence: int, expected: int | None = None
    ) -> tuple[Event, ...]:
        if events:
            self._effect(f"log {events[-1].kind}")
        return super().append(events, operation=operation, fence=fence, expected=expected)


class _Interrupts:
    """As `SignalInterrupts`; `received` is set by a test."""

    received: int | None = None

    def check(self) -> None:
        if self.received is not None:
            raise Interrupted(self.received)

    @contextlib.contextmanager
    def armed(self) -> Iterator[None]:
        self.check()
        yield
        self.check()


class _Asker:
    """Answers a question by its kind or subject; `asked` are all questions. `works` runs before each answer."""

    interactive = True

    def __init__(self, answers: Mapping[str, str]) -> None:
        self._answers = answers
        self.asked: list[Decision] = []
        self.works: Callable[[], None] = lambda: None

    def ask(self, decision: Decision) -> Answer | None:
        self.asked.append(decision)
        self.works()
        choice = self._answers.get(decision.kind, self._answers.get(decision.subject))
        return None if choice is None else Answer(decision.id, choice, "Pat")
