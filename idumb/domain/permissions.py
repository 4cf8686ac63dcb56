"""What programs and steps may do: the sandbox in which agents and checks run, and the policy that restricts tools."""

from __future__ import annotations

from msgspec import Struct

from idumb.domain import canonical_json

SANDBOX_AUTO, SANDBOX_BWRAP, SANDBOX_OFF = SANDBOXES = ("auto", "bwrap", "off")


class SandboxSettings(Struct, frozen=True):
    """What keeps agents from writing elsewhere than they should.

    `level` is one of SANDBOXES. `write` are further places where agents may write: absolute, or below the home (`~/`).
    A place in the checkout is writable anyway.
    """

    level: str = SANDBOX_AUTO
    write: tuple[str, ...] = ()


DETECTION = "detection only"
"""The level without a sandbox: writes elsewhere are not prevented. idumb names those in the repository."""


class Support(Struct, frozen=True):
    """What a machine supports: the path of a usable bubblewrap.

    `no_bwrap` says why it has none, `add` which package would add it; each is "" if it is there.
    """

    bwrap: str = ""
    no_bwrap: str = ""
    add: str = ""


class Fence(Struct, frozen=True):
    """Where a program may write. All paths are absolute, real and exist.

    - `writable`: it may write there and below.
    - `guarded`: it must never write there, even below a writable folder. What is writable below stays writable.
    - `read_only`: it must not write there. What is writable below stays writable.
    """

    writable: tuple[str, ...]
    guarded: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()


def choose_sandbox(support: Support) -> tuple[str, str]:
    """Return the level in force and, without a sandbox, why there is none."""
    return (DETECTION, support.no_bwrap) if support.no_bwrap else (SANDBOX_BWRAP, "")


def sandbox_words(support: Support) -> str:
    """Return what a machine supports, in words."""
    package = f"; the package {support.add} adds one" if support.add else ""
    return f"{support.no_bwrap}{package}" if support.no_bwrap else "bubblewrap"


class Policy(Struct, frozen=True):
    """`tools` is None if no policy file restricts them.

    `sources` are the policy files that were read, as (path, SHA-256 of the bytes), the system-wide ones first.
    """

    tools: frozenset[str] | None = None
    sources: tuple[tuple[str, str], ...] = ()

    @property
    def digest(self) -> str | None:
        """Return the hash that a contract includes; None without a policy file.

        It depends on the bytes and on the paths of the files, because the path decides what a file may restrict.
        """
        return canonical_json.digest([list(source) for source in self.sources]) if self.sources else None


NO_POLICY = Policy()


def narrow(policies: tuple[Policy, ...]) -> Policy:
    """Combine policies: a tool must be allowed by each of them."""
    tools: frozenset[str] | None = None
    for policy in policies:
        if policy.tools is not None:
            tools = policy.tools if tools is None else tools & policy.tools
    return Policy(tools, tuple(source for policy in policies for source in policy.sources))
