"""Agent adapters, one per file. They do the work of a task and do not know where it is stored.

`registry` makes the adapter of a binding (`adapter.Adapter`):

- without a program: `steps`, `handoff` (for people and editors too), `replay`, and `model_agent` with `model_tools`;
- with a program (`program.ProgramAgent`): `command`, and agents that idumb knows (`known_agent`): `preset_agent` runs
  `claude` and `codex`, `acp` those that speak the protocol in `acp_client`.

`prompt` renders what they are asked, `answers` and `failure_words` read what they answer, `transcript` keeps what they
did.
"""
