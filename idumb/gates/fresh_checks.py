"""Checks in a fresh clone: the same commands as in a run, with a home and a temporary folder of their own."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from idumb.domain.plans.plan import Condition
from idumb.domain.proof.evidence import Evidence
from idumb.gates import checks, conditions
from idumb.system.processes import child_process, process_tree

_TOOLCHAINS = {
    "CARGO_HOME": ".cargo",
    "GOPATH": "go",
    "NVM_DIR": ".nvm",
    "PYENV_ROOT": ".pyenv",
    "RUSTUP_HOME": ".rustup",
}
"""Where tools look for themselves if a variable does not say so: folders of the user's home."""


class FreshChecks:
    """Implements the port `Checks` in the clone at `root`. Nothing is recorded, and no owner is needed."""

    apart = False

    def __init__(
        self,
        root: str,
        allowed: Sequence[str],
        redact: Callable[[str], str],
        run_id: str,
        *,
        home: str,
        temporary: str,
        idle_timeout: float | None,
        limits: Mapping[str, int],
    ) -> None:
        self._root = root
        self._redact = redact
        self._idle_timeout = idle_timeout
        self._limits = limits
        cookies = child_process.run_cookies(run_id, root)
        self._cookie = cookies[child_process.PLACE_COOKIE]
        self._environment = child_process.environment(allowed, {**_private(home, temporary), **cookies})

    def command(
        self,
        subject: str,
        text: str,
        command: str,
        *,
        timeout: float | None,
        tree: str | None,
        lent: Sequence[str] = (),  # noqa: ARG002 - the port's signature
    ) -> Evidence:
        return checks.check(
            subject,
            text,
            command,
            root=self._root,
            environment=self._environment,
            timeout=timeout,
            tree=tree,
            redact=self._redact,
            idle_timeout=self._idle_timeout,
            limits=self._limits,
        )

    def condition(self, subject: str, condition: Condition, *, timeout: float | None, tree: str | None) -> Evidence:
        if condition.kind == "command":
            return self.command(subject, condition.subject, condition.subject, timeout=timeout, tree=tree)
        variables = child_process.environment([condition.subject]) if condition.kind == "env" else {}
        return conditions.check(subject, condition, root=self._root, environment=variables, tree=tree)

    def end_processes(self) -> tuple[int, ...]:
        return process_tree.end_all(child_process.PLACE_COOKIE, self._cookie)


def _private(home: str, temporary: str) -> dict[str, str]:
    """Return the variables of a private home, and where the user's toolchains are."""
    user = os.path.expanduser("~")
    folders = {name: os.path.join(user, folder) for name, folder in _TOOLCHAINS.items()}
    present = {name: folder for name, folder in folders.items() if os.path.isdir(folder)}
    return {**present, **child_process.environment(_TOOLCHAINS), "HOME": home, "TMPDIR": temporary}
