"""Configuration as data: what `.idumb/config.yaml` may say, with its defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from idumb.domain import canonical

COMMIT_TASK = "task"
COMMIT_BUILDER = "builder"
COMMIT_NONE = "none"
COMMIT_POLICIES = (COMMIT_TASK, COMMIT_BUILDER, COMMIT_NONE)

ACCEPT = "accept"
HALT = "halt"
DEVIATION_POLICIES = (ACCEPT, HALT)

DEFAULT_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TERM", "TMPDIR", "USER", "LOGNAME", "SHELL", "TZ")


@dataclass(frozen=True, slots=True)
class Binding:
    """A named way to fill a role. `prompt` is `stdin` or `file`; `timeout` in seconds overrides the task's."""

    name: str
    adapter: str
    argv: tuple[str, ...] = ()
    prompt: str = "stdin"
    environment: tuple[str, ...] = ()
    timeout: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GitSettings:
    commit: str = COMMIT_TASK
    hooks: bool = True
    commit_reports: bool = True


@dataclass(frozen=True, slots=True)
class RunSettings:
    """`halt_after`: failed tasks in a row that stop a run. Times in seconds, output in bytes."""

    max_attempts: int = 3
    halt_after: int = 3
    on_deviation: str = HALT
    validator_timeout: int = 120
    check_timeout: int = 600
    output_limit: int = 8 * 1024 * 1024
    workspace: str = "here"


@dataclass(frozen=True, slots=True)
class Settings:
    """`builder` and `validator` name bindings; None means that tasks bring their own steps and proofs."""

    builder: str | None = None
    validator: str | None = None
    bindings: Mapping[str, Binding] = field(default_factory=dict)
    git: GitSettings = GitSettings()
    run: RunSettings = RunSettings()
    protected: tuple[str, ...] = ()
    environment: tuple[str, ...] = DEFAULT_ENVIRONMENT

    def digest(self) -> str:
        """What consent is bound to: every setting decides what runs or what is written."""
        return canonical.digest(asdict(self))
