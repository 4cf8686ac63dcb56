"""The `Checks` port: runs the project's commands and conditions in the workspace."""

from __future__ import annotations

import copy
import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from idumb.domain import canonical_json, wording
from idumb.domain.plans.plan import Condition
from idumb.domain.proof import evidence, test_counts
from idumb.domain.proof.evidence import Evidence
from idumb.gates import conditions
from idumb.system.processes import child_process, process_tree

if TYPE_CHECKING:
    from idumb.gates.base_checks import BaseChecks
    from idumb.gates.check_environment import CheckEnvironment, Conditions
    from idumb.gates.check_words import Hints
    from idumb.gates.proving import Proving, Sandbox


class ShellChecks:
    """Checks of one run. A check of a tree runs in the working tree `proving`, on top of the commit of `head`.

    What judges the machine runs in `root`, an absolute path, with only the variables of `allowed`.
    A check may be silent for `idle_timeout` seconds and use what `limits` allow. `run_id` marks every process that
    builders and checks of this run start, so that any later process can end it, with the user's project at `place`.
    `guard` raises if this process must no longer write, because the run's processes then belong to another owner.
    `private` gives each check an environment of its own; commands that prove nothing about the work,
    such as those that take it back, have that of `allowed`.
    `sandbox` limits the checks that judge a tree.
    `prepare` are commands that install what checks need in the working tree of `proving`; each may run for
    `prepare_timeout` seconds. `is_work` returns whether the run changed a path of a tree; a check must not change it.
    `hints` name what a failed check may need. `note` reports what takes long and is no check.
    """

    def __init__(
        self,
        root: str,
        allowed: Sequence[str],
        redact: Callable[[str], str],
        run_id: str,
        *,
        place: str = "",
        idle_timeout: float | None = None,
        limits: Mapping[str, int] | None = None,
        guard: Callable[[], None] = lambda: None,
        private: CheckEnvironment | None = None,
        proving: Proving | None = None,
        head: Callable[[], str | None] = lambda: None,
        prepare: Sequence[str] = (),
        prepare_timeout: float | None = None,
        base: Callable[[], BaseChecks[Proving]] | None = None,
        sandbox: Sandbox | None = None,
        is_work: Callable[[str, str], bool] = lambda _tree, _path: False,
        hints: Hints | None = None,
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._guard = guard
        self._prepare = tuple(prepare)
        self._prepare_timeout = prepare_timeout
        self._prepare_identity = ""
        self._proving = proving
        self._head = head
        self._base = base
        self._sandbox = sandbox
        self._is_work = is_work
        self._hints = hints
        self._note = note
        self._rewrites: tuple[str, ...] = ()
        self._started: Callable[[int], None] | None = None
        self._root = root
        self._redact = redact
        self._idle_timeout = idle_timeout
        self._limits = limits
        cookies = child_process.run_cookies(run_id, place or root)
        self._cookie = cookies[child_process.PLACE_COOKIE]
        self._cookies = cookies
        self._given: Mapping[str, str] = {}
        self._environment = child_process.environment(allowed, cookies)
        self._private = private
        self._searched = False
        self._remembered: dict[str, Evidence] = {}

    def alone(self, subject: str, command: str, *, timeout: float | None, tree: str) -> Evidence:
        key = canonical_json.digest([tree, command, self._environment_for(timeout)])
        if key in self._remembered:
            return dataclasses.replace(self._remembered[key], subject=subject)
        self.renew()
        made = self.command(subject, command, command, timeout=timeout, tree=tree)
        if made.exit_code is not None and made.result != evidence.ERRORED:
            self._remembered[key] = made
        return made

    def _environment_for(self, timeout: float | None) -> str:
        """Return a digest of what decides the result of a command, besides the tree."""
        private = None if self._private is None else self._private.digest
        limits = [dict(self._limits or {}), self._idle_timeout, timeout]
        given = [dict(self._given)] if self._given else []
        return canonical_json.digest([private, limits, self._prepare, *given])

    def command(self, subject: str, text: str, command: str, *, timeout: float | None, tree: str | None) -> Evidence:
        self._guard()
        root, variables, present = self._place(tree)
        if self._private is None or subject.startswith(_NO_PROOF):
            environment = {**self._environment, **self._given, **variables}
            return self._check(subject, text, command, root, environment, (), timeout=timeout, tree=tree)
        launcher, level = tuple[str, ...](), ""
        try:
            with self._private.opened(command, root, present) as conditions:
                environment = {**conditions.variables, **self._given, **variables, **self._cookies}
                if self._sandbox is not None:
                    launcher, level = self._sandbox.limited(root, environment)
                made = self._check(subject, text, command, root, environment, launcher, timeout=timeout, tree=tree)
        except OSError as problem:
            words = f"no private folder could be made for this check: {problem}"
            return Evidence(subject, text, evidence.ERRORED, command, (SHELL, "-c", command), output=words, tree=tree)
        made = _under(conditions, made)
        return dataclasses.replace(made, sandbox=level) if level else made

    def _check(
        self,
        subject: str,
        text: str,
        command: str,
        root: str,
        environment: Mapping[str, str],
        launcher: Sequence[str],
        *,
        timeout: float | None,
        tree: str | None,
    ) -> Evidence:
        made = check(
            subject,
            text,
            command,
            root=root,
            environment=environment,
            timeout=timeout,
            tree=tree,
            redact=self._redact,
            idle_timeout=self._idle_timeout,
            limits=self._limits,
            launcher=launcher,
            beside=self._started,
        )
        if tree is None or self._proving is None:
            return made
        from idumb.gates import check_words

        made = check_words.with_extras(made, self._proving)
        if os.path.dirname(root) in made.output:  # people know paths of their own
            made = dataclasses.replace(made, output=check_words.with_own_paths(made.output, root))
        if made.result in evidence.BROKEN and self._hints is not None:
            made = check_words.with_hints(made, self._hints.of(made, environment, self._proving))
        if changed := self._proving.restore():
            made = self._with_changed(made, command, changed, tree)
        return dataclasses.replace(made, weaker=(*made.weaker, *self._rewrites)) if self._rewrites else made

    def _with_changed(self, made: Evidence, command: str, changed: Sequence[str], tree: str) -> Evidence:
        """Return the evidence of a check that changed files of the tree.

        It proves nothing if it changed what it judges: the work, or what decides its result. Else it proves less, as
        do later checks, which may use what it made of the changed files.
        """
        from idumb.domain.proof import rewrites
        from idumb.gates import check_words

        made = check_words.with_changed(made, changed)
        if made.passed and (rewrites.judged(command, changed) or any(self._is_work(tree, path) for path in changed)):
            return dataclasses.replace(made, result=evidence.FAILED)
        line = wording.one_line(command)
        name = line if len(line) <= _MOST_OF_COMMAND else f"{line[:_MOST_OF_COMMAND]}…"
        reason = f"`{name}` changed {wording.listed(changed)}, which idumb restored"
        self._rewrites = tuple(dict.fromkeys((*self._rewrites, reason)))
        return made

    def _place(self, tree: str | None) -> tuple[str, Mapping[str, str], tuple[str, ...]]:
        """Return where to judge a tree, variables, and what is there besides the tree.

        `tree` is None for a check of the machine.
        """
        proving = self._proving
        if tree is None or proving is None:
            return self._root, {}, ()
        variables = proving.show(tree, self._head())
        if self._prepare:
            self._prepare_tree(proving, variables)
        return proving.root, variables, (*proving.provided, *proving.prepared)

    def _prepare_tree(self, proving: Proving, variables: Mapping[str, str]) -> None:
        from idumb.gates import preparation

        if not self._prepare_identity:
            programs = self._private.variables_for(proving.root) if self._private is not None else self._environment
            self._prepare_identity = preparation.identity(self._prepare, programs)

        def run() -> None:
            for command in self._prepare:
                self._note(f"Installing what checks need: {command}")
                preparation.require(self._installed(command, proving, variables))

        proving.prepare(self._prepare_identity, run)

    def _installed(self, command: str, proving: Proving, variables: Mapping[str, str]) -> Evidence:
        def run(environment: Mapping[str, str]) -> Evidence:
            return check(
                "setup (checkout.prepare)",
                command,
                command,
                root=proving.root,
                environment={**environment, **variables, **self._cookies},
                timeout=self._prepare_timeout,
                tree=None,
                redact=self._redact,
                idle_timeout=self._idle_timeout,
                limits=self._limits,
                beside=self._started,
            )

        if self._private is None:
            return run(self._environment)
        with self._private.opened(command, proving.root) as conditions:
            return run(conditions.variables)

    def renew(self) -> None:
        self._rewrites = ()
        if self._proving is not None:
            self._proving.renew()

    def on_top_of(self, commit: str) -> ShellChecks:
        checks = copy.copy(self)
        checks._head = lambda: commit  # noqa: SLF001 - its own class
        return checks

    def given(self, variables: Mapping[str, str]) -> ShellChecks:
        checks = copy.copy(self)
        checks._given = dict(variables)  # noqa: SLF001 - its own class
        return checks

    def start_controls(self, commands: Mapping[str, str], *, tree: str, timeout: float, delay: float) -> None:
        if self._base is None:
            return
        environment = self._environment_for(timeout)
        self.end_processes()  # the first search ends every process of the run, so it must come before the controls
        base, head = self._base(), self._head()
        base.start(self._beside, commands, tree=tree, head=head, environment=environment, timeout=timeout, delay=delay)

    def controls(self, *, wait: bool) -> Mapping[str, str]:
        return {} if self._base is None else self._base().results(wait=wait)

    def stop_controls(self) -> None:
        if self._base is not None:
            self._base().stop()

    def _beside(self, proving: Proving, head: str | None, started: Callable[[int], None]) -> ShellChecks:
        """Return the same checks for another thread, in a working tree and private folders of their own."""
        checks = copy.copy(self)
        private = None if self._private is None else self._private.another()
        checks._proving, checks._private = proving, private  # noqa: SLF001 - its own class
        checks._head, checks._started = (lambda: head), started  # noqa: SLF001 - its own class
        checks._rewrites, checks._is_work = (), lambda _tree, _path: False  # noqa: SLF001 - it must not read the log
        checks._note = lambda _: None  # noqa: SLF001 - the terminal belongs to the caller's thread
        checks._hints = None  # noqa: SLF001 - a control may fail
        return checks

    def close(self) -> None:
        """Remove the private folders."""
        if self._private is not None:
            self._private.close()

    def condition(self, subject: str, condition: Condition, *, timeout: float | None, tree: str | None) -> Evidence:
        if condition.kind == "command":
            return self.command(subject, condition.subject, condition.subject, timeout=timeout, tree=tree)
        # `env NAME` asks what the user provides, whether or not checks can see it.
        variables = child_process.environment([condition.subject]) if condition.kind == "env" else {}
        return conditions.check(subject, condition, root=self._place(tree)[0], environment=variables, tree=tree)

    def end_processes(self) -> tuple[int, ...]:
        """End processes that builders and checks of this run left behind. Return their ids.

        An earlier process of the same run may have been killed, so the first call inspects every process. After that
        only this process can have started any, and it adopts their orphans.
        """
        self._guard()
        ended: tuple[int, ...] | None = None
        if self._searched:
            ended = process_tree.end_strays()
        self._searched = True
        return process_tree.end_all(child_process.PLACE_COOKIE, self._cookie) if ended is None else ended


SHELL = "/bin/sh"
_MOST_OF_COMMAND = 40
"""Characters of a command in a reason that a report lists."""


NOT_EXECUTABLE = 126
NOT_FOUND = 127


def check(
    subject: str,
    text: str,
    command: str,
    *,
    root: str,
    environment: Mapping[str, str],
    timeout: float | None,
    tree: str | None,
    redact: Callable[[str], str],
    idle_timeout: float | None = None,
    limits: Mapping[str, int] | None = None,
    launcher: Sequence[str] = (),
    beside: Callable[[int], None] | None = None,
) -> Evidence:
    """Run one fixed string with `/bin/sh -c` in `root`, an absolute path. Times are in seconds.

    `launcher` are the arguments of a program that becomes the shell. `beside` is that of `child_process.run`.
    """
    argv = (SHELL, "-c", command)
    if "\0" in command:
        return Evidence(subject, text, evidence.ERRORED, command, argv, output="the command contains a NUL character")
    try:
        finished = child_process.run(
            (*launcher, *argv),
            cwd=root,
            environment=environment,
            timeout=timeout,
            idle_timeout=idle_timeout,
            limits=limits,
            guarded=True,
            beside=beside,
        )
    except OSError as problem:
        words = f"{SHELL} could not be started in {root}: {problem.strerror}"
        return Evidence(subject, text, evidence.ERRORED, command, argv, output=words, tree=tree)
    output = finished.output.text(redact)
    result, note = _result(finished), _note(finished)
    if result == evidence.PASSED and output and not subject.startswith(_NO_PROOF):
        no_tests = test_counts.find(command, output, truncated=finished.output.truncated)
        if no_tests is not None:
            # An invariant also holds in a project that has no test yet.
            result = evidence.UNPROVEN if _is_invariant(subject) else evidence.FAILED
            note = no_tests.words
    return Evidence(
        subject=subject,
        text=text,
        result=result,
        command=command,
        argv=argv,
        exit_code=finished.exit_code,
        output=f"{output.rstrip()}\n[{note}]".lstrip() if note else output,
        output_sha256=finished.output.sha256,
        truncated=finished.output.truncated,
        tree=tree,
        seconds=finished.seconds,
        cause=finished.cause,
    )


_NO_PROOF = ("precondition", "setup", "rollback of ")
"""Subjects of commands that prepare or undo work and prove nothing about it."""


def _is_invariant(subject: str) -> bool:
    return "invariant" in subject.split(" ")


def _under(conditions: Conditions, result: Evidence) -> Evidence:
    """Return the evidence with the conditions under which it was found."""
    output = result.output
    if result.exit_code == NOT_FOUND and conditions.omitted:
        folders = ", ".join(conditions.omitted)
        output += f"\n[PATH names {folders} in your working tree, which checks do not search unless it is provided]"
    return dataclasses.replace(
        result,
        output=output,
        weaker=(*result.weaker, *conditions.weaker),
        locations=(*conditions.locations, *result.locations),
        changed_programs=conditions.changed,
    )


def _result(finished: child_process.Finished) -> str:
    if finished.timed_out:
        return evidence.TIMED_OUT
    if finished.exit_code == 0:
        return evidence.PASSED
    return evidence.ERRORED if finished.exit_code in {NOT_EXECUTABLE, NOT_FOUND} else evidence.FAILED


def _note(finished: child_process.Finished) -> str:
    """Explain exit codes that are not self-explanatory."""
    if words := finished.words():
        return words
    if finished.exit_code == NOT_FOUND:
        return "exit 127: the shell could not find a program, so nothing was checked"
    if finished.exit_code == NOT_EXECUTABLE:
        return "exit 126: the shell could not execute a program, so nothing was checked"
    return ""
