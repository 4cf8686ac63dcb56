"""Runs the project's commands and conditions on trees, or in the workspace."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from idumb.domain import canonical_json, wording
from idumb.domain.plans import run_files
from idumb.domain.plans.plan import Condition
from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import NOT_RUN, Evidence
from idumb.gates import conditions, shell_command
from idumb.gates.controls import Controls
from idumb.gates.prepare import prepare_identity, require_prepared
from idumb.gates.shell_command import NO_PROOF, Shell
from idumb.system import child_process, process_end, process_tree

if TYPE_CHECKING:
    from threading import Event

    from idumb.app.core.services import ProofCheckout
    from idumb.gates.check_environment import CheckEnvironment
    from idumb.gates.shell_command import Hints

_MOST_OF_COMMAND = 40
"""Characters of a command in a reason that a report lists."""


class Sandbox(Protocol):
    """Limits what a check writes and reaches."""

    def limited(self, root: str, variables: Mapping[str, str]) -> tuple[tuple[str, ...], str]:
        """Return the arguments before those of a check in `root`, and the level in words."""


class ShellChecks(Struct, kw_only=True):
    """Checks of one run. A check of a tree runs in the working tree `proof`, on top of the commit of `head`.

    What judges the machine runs in `root`, an absolute path, with only the variables of `allowed`. `run_id` marks every
    process that builders and checks of this run start, so that any later process can end it, with the user's project at
    `place`. `guard` raises if this process must no longer write, because the run's processes then belong to another
    owner. `private` gives each check
    an environment of its own; commands that prove nothing about the work, such as those that take it back, have that of
    `allowed`. `sandbox` limits the checks that judge a tree.
    `prepare` are commands that install what checks need in the working tree of `proof`. Each command may run for
    `timeout` seconds. `is_work` returns whether the run changed a path of a tree; a check must not change it.
    `hints` name what a failed check may need. `note` reports what takes long and is no check.
    """

    root: str
    allowed: Sequence[str]
    run_id: str
    shell: Shell
    private: CheckEnvironment
    proof: ProofCheckout
    place: str = ""
    guard: Callable[[], None] = lambda: None
    head: Callable[[], str | None] = lambda: None
    prepare: Sequence[str] = ()
    timeout: float | None = None
    controls: Controls = field(default_factory=Controls)
    sandbox: Sandbox | None = None
    is_work: Callable[[str, str], bool] = lambda _tree, _path: False
    hints: Hints | None = None
    note: Callable[[str], None] = lambda _: None
    _given: Mapping[str, str] = field(default_factory=dict)
    _remembered: dict[str, Evidence] = field(default_factory=dict)
    _rewrites: tuple[str, ...] = ()
    _prepare_identity: str = ""
    _searched: bool = False

    @property
    def _cookies(self) -> Mapping[str, str]:
        return child_process.run_cookies(self.run_id, self.place or self.root)

    @property
    def _environment(self) -> Mapping[str, str]:
        return child_process.environment(self.allowed, self._cookies)

    def alone(self, subject: str, command: str, *, tree: str, timeout: float = 0) -> Evidence:
        """Run a command that sees nothing of earlier ones, where checks run.

        A result of the same tree, command and environment is remembered as long as this object lives, never on disk.
        """
        key = canonical_json.digest([tree, command, self._environment_for(timeout or self.timeout)])
        if key in self._remembered:
            return replace(self._remembered[key], subject=subject)
        self.renew()
        made = self.command(subject, command, command, tree=tree, timeout=timeout)
        if made.exit_code is not None and made.result != evidence.ERRORED:
            self._remembered[key] = made
        return made

    def _environment_for(self, timeout: float | None) -> str:
        """Return a digest of what decides the result of a command, besides the tree."""
        limits = [dict(self.shell.limits or {}), self.shell.idle_timeout, timeout]
        return canonical_json.digest([self.private.digest, limits, list(self.prepare), dict(self._given)])

    def command(self, subject: str, text: str, command: str, *, tree: str | None, timeout: float = 0) -> Evidence:
        """Run a fixed command string with `/bin/sh -c` on a tree or in the workspace. Codes 126 and 127 are errors.

        It is killed after `timeout` seconds; 0 stands for the limit of all checks.
        """
        self.guard()
        asked, limit = Evidence(subject, text, NOT_RUN, command, tree=tree), timeout or self.timeout
        root, variables, present = self._place(tree)
        if subject.startswith(NO_PROOF):
            own = {"IDUMB_REPOSITORY": self.place or root, **variables}
            environment = {**self._environment, **self._given, **own}
            return self._seen(self.shell.run(asked, root, environment, limit), root, environment)
        launcher, level = tuple[str, ...](), ""
        try:
            with self.private.opened(command, root, present) as conditions:
                environment = {**conditions.variables, **self._given, **variables, **self._cookies}
                if self.sandbox is not None:
                    launcher, level = self.sandbox.limited(root, environment)
                made = self._seen(self.shell.run(asked, root, environment, limit, launcher), root, environment)
        except OSError as problem:
            words = f"this check could not begin: {problem}"
            return replace(asked, result=evidence.ERRORED, output=words)
        return replace(
            made,
            weaker=(*made.weaker, *conditions.weaker),
            locations=(*conditions.locations, *made.locations),
            changed_programs=conditions.changed,
            sandbox=level,
        )

    def _seen(self, made: Evidence, root: str, environment: Mapping[str, str]) -> Evidence:
        """Return the evidence with what the proof checkout shows of the command that ran there."""
        tree = made.tree
        if tree is None:
            return made
        made = shell_command.with_extras(made, self.proof)
        made = replace(made, output=shell_command.with_own_paths(made.output, root))
        if made.result in evidence.BROKEN and self.hints is not None:
            made = shell_command.with_hints(made, self.hints.of(made, environment, self.proof))
        if changed := self.proof.restore():
            made = self._with_changed(made, changed, tree)
        return replace(made, weaker=(*made.weaker, *self._rewrites)) if self._rewrites else made

    def _with_changed(self, made: Evidence, changed: Sequence[str], tree: str) -> Evidence:
        """Return the evidence of a check that changed files of the tree.

        It proves nothing if it changed what it judges: the work, or what decides its result. Else it proves less, as
        do later checks, which may use what it made of the changed files.
        """
        command = made.command or ""
        note = f"[the check changed {wording.listed(changed)}, which the commit holds; idumb restored it]"
        made = replace(made, output=f"{made.output.rstrip()}\n{note}".lstrip(), changed=tuple(changed))
        if made.passed and (run_files.deciding(command, changed) or any(self.is_work(tree, path) for path in changed)):
            return replace(made, result=evidence.FAILED)
        line = wording.one_line(command)
        name = line if len(line) <= _MOST_OF_COMMAND else f"{line[:_MOST_OF_COMMAND]}…"
        reason = f"`{name}` changed {wording.listed(changed)}, which idumb restored"
        self._rewrites = tuple(dict.fromkeys((*self._rewrites, reason)))
        return made

    def _place(self, tree: str | None) -> tuple[str, Mapping[str, str], tuple[str, ...]]:
        """Return where to judge a tree, variables, and what is there besides the tree.

        `tree` is None for a check of the machine.
        """
        if tree is None:
            return self.root, {}, ()
        proof = self.proof
        variables = proof.show(tree, self.head())
        if self.prepare:
            self._prepare_tree(variables)
        return proof.root, variables, (*proof.provided, *proof.prepared)

    def _prepare_tree(self, variables: Mapping[str, str]) -> None:
        root = self.proof.root
        if not self._prepare_identity:
            self._prepare_identity = prepare_identity(self.prepare, self.private.variables_of("", root))

        def run() -> None:
            for command in self.prepare:
                self.note(f"Installing what checks need: {command}")
                require_prepared(self._installed(command, root, variables))

        self.proof.prepare(self._prepare_identity, run)

    def _installed(self, command: str, root: str, variables: Mapping[str, str]) -> Evidence:
        asked, own = Evidence("setup (checkout.prepare)", command, NOT_RUN, command), {**variables, **self._cookies}
        with self.private.opened(command, root) as conditions:
            environment = {**conditions.variables, **own}
            made = self.shell.run(asked, root, environment, self.timeout)
        hints = () if made.passed or self.hints is None else self.hints.of(made, environment, self.proof)
        return replace(made, may_need="; ".join(hints))

    def lacked_by_hook(self, words: str) -> str:
        """Return what a hook that refused with these words may need in the proof checkout; "" if nothing is known."""
        return self.hints.of_hook(words, self.proof.root) if self.hints else ""

    def renew(self) -> None:
        """Make the next check not see what earlier ones left."""
        self._rewrites = ()
        self.proof.renew()

    def given(self, variables: Mapping[str, str]) -> ShellChecks:
        """Return the same checks, with these environment variables for every command."""
        checks = copy.copy(self)
        checks._given = dict(variables)  # noqa: SLF001 - its own class
        return checks

    def start_controls(self, commands: Mapping[str, str], *, tree: str) -> None:
        """Begin to run commands, each with its subject, on the tree before the work.

        They run beside the builder, where checks run: no check may run before `end_controls`.
        """
        environment = self._environment_for(self.timeout)
        self.end_processes()  # the first search ends every process of the run, so it must come before the controls
        beside = functools.partial(self._beside, self.head())
        self.controls.start(beside, commands, tree=tree, environment=environment)

    def end_controls(self, *, limit: float | None) -> Mapping[str, str]:
        """Return the result of each control, by its command. After `limit` seconds, one that still runs is killed.

        Nothing that they left takes part in a later check.
        """
        results = self.controls.end(limit=limit)
        self.renew()
        return results

    def _beside(self, head: str | None, stopped: Event) -> ShellChecks:
        """Return the same checks for another thread, which leave nothing for those of the work."""
        checks = copy.copy(self)
        checks.head = lambda: head
        checks.shell = replace(self.shell, beside=stopped)
        checks._rewrites, checks.is_work = (), lambda _tree, _path: False  # noqa: SLF001 - it must not read the log
        checks.note = lambda _: None  # the terminal belongs to the caller's thread
        checks.hints = None  # a control may fail
        self.proof.renew(control=True)
        return checks

    def condition(self, subject: str, condition: Condition, *, tree: str | None) -> Evidence:
        if condition.kind == "command":
            return self.command(subject, condition.subject, condition.subject, tree=tree)
        # `env NAME` asks what the user provides, whether or not checks can see it.
        variables = child_process.environment([condition.subject]) if condition.kind == "env" else {}
        return conditions.check(subject, condition, root=self._place(tree)[0], environment=variables, tree=tree)

    def end_processes(self) -> tuple[int, ...]:
        """End processes that builders and checks of this run left behind. Return their ids.

        An earlier process of the same run may have been killed, so the first call inspects every process. After that
        only this process can have started any, and it adopts their orphans.
        """
        self.guard()
        ended = process_end.end_strays() if self._searched else None
        self._searched = True
        name = process_tree.PLACE_COOKIE
        return process_end.end_all(name, self._cookies[name], folder=self.proof.root) if ended is None else ended
