"""The policy: which tools the steps of a plan may use. Nobody's plan can widen it."""

from __future__ import annotations

from dataclasses import dataclass

from idumb.domain import canonical_json


@dataclass(frozen=True, slots=True)
class Policy:
    """`tools` None means that no policy file names any, so all are allowed.

    `sources` are the policy files that were read, as (path, SHA-256 of the bytes), the system-wide ones first.
    """

    tools: frozenset[str] | None = None
    sources: tuple[tuple[str, str], ...] = ()

    def allows(self, tool: str) -> bool:
        return self.tools is None or tool in self.tools

    @property
    def digest(self) -> str | None:
        """What a contract is bound to; None without a policy file, so that hashes are the same as before there was one.

        It depends on the bytes of the files and on where they lie, because the place decides what they may say.
        """
        return canonical_json.digest([list(source) for source in self.sources]) if self.sources else None


NO_POLICY = Policy()


def narrow(policies: tuple[Policy, ...]) -> Policy:
    """All policies together: a tool must be allowed by each of them."""
    tools: frozenset[str] | None = None
    for policy in policies:
        if policy.tools is not None:
            tools = policy.tools if tools is None else tools & policy.tools
    return Policy(tools, tuple(source for policy in policies for source in policy.sources))
