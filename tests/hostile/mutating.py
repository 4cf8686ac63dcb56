"""Text that is almost right: real files changed a little, and files put together at random. All of it by a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

SIGNS = (
    *("`", "``", "—", "–", "--", " - ", ":", "*", "**", "#", "[", "]", "{", "}", "(", ")", "|", ">", "<", "&"),
    *("!", "%"),
    *("@", "\\", "'", '"', ",", ";", "~", "$", "\t", "\r", "\x00", "\x0b", "\x0c", "\x1b[2J", "\x85", "\xa0", "\x7f"),
    *("\u2028", "\u202e", "\u200b", "\ufeff", "\ufffd", "\U000e0041", "é", "e\u0301", "Ｔ", "１", "ﬁ", "𝟙", "İ", "ſ"),
    *("<!--", "-->", "---", "...", "```", "~~~", "```yaml task", "```yaml steps", "```json steps", "- [ ] ", "- [x] "),
    *("&a ", "*a", "<<: ", "!!python/object:os.system ", "!!binary ", "? ", "? - : ", "- - - ", ": |", ": >-9"),
    *("%YAML 9",),
    *("null", "~", "yes", "0o17", "0x1F", "1e999", "-.inf", ".nan", "9" * 400, "2001-13-45", "NaN", "Infinity"),
    *("1_000",),
    *("\\ud800", "\\u0000", "\\x", "../", "/etc/passwd", "C:\\", "~/x", "**/*", ".git/config", "\n", "\r\n", "\n\n"),
    *("T1-01", "T1-99", "T0-00", "REQ-1", "none", "Depends on:", "check:", "verify", "human", "AC-1: ", "1h99m", "-5s"),
)
DEEP = ("[", "{a: ", "- ", "> ", "* ", '{"a":', "((", "  - a:\n", "**", "`", "<!-- ", "<a", "\\", "&a [*a, ", "| ", "_")
LABELS = (
    *("Kind", "Requirements", "Depends on", "Files", "Symbols", "Interfaces", "Acceptance", "Verify", "Tests"),
    *("Limits",),
    *("Preconditions", "Postconditions", "Invariants", "Change", "Rollback", "On failure", "Estimate", "Timeout"),
    *("On timeout", "Reads", "Writes", "Owns", "Parallel", "Builder", "Validator", "Handoff to", "Priority", "Options"),
    *("Notes", "References", "Tags", "Assigned to", "x-mine", "Dependz", "FILES", "depends_on", "Acceptance criteria"),
)
VALUES = (
    *("none", "", "[]", "REQ-1", "T1-02", "T1-01, T1-03", "create `a.py`", "modify `src/**`, delete b", "30m", "1h30m"),
    *("move a to b", "read `c`", "`make`", "``a ` b``", "block", "irreversible: mail", "files 3, lines 4"),
    *("preserving",),
    *("file exists a", 'file contains a "b"', "env HOME", "command `x`", "symbol f in a.py", "\n  - create `x`", "yes"),
    *("\n  - [ ] it holds — check: `true`", "\n  - [ ] a — human\n    - look", "\n  - [ ] TBD", "\n  - a: b\n  - c: d"),
    *("\n  - `pytest` — fails before, passes after: it", "add `f`, remove `g`", "high", "human-verify", "decision"),
)

Mutation = Callable[[str, random.Random, Sequence[str]], str]


def _span(text: str, chosen: random.Random, longest: int = 200) -> tuple[int, int]:
    begin = chosen.randrange(len(text) + 1)
    return begin, min(len(text), begin + chosen.randrange(longest))


def _inserted(text: str, chosen: random.Random, _: Sequence[str]) -> str:
    at = chosen.randrange(len(text) + 1)
    return text[:at] + chosen.choice(SIGNS) + text[at:]


def _replaced(text: str, chosen: random.Random, _: Sequence[str]) -> str:
    begin, end = _span(text, chosen, 8)
    return text[:begin] + chosen.choice(SIGNS) + text[end:]


def _without(text: str, chosen: random.Random, _: Sequence[str]) -> str:
    begin, end = _span(text, chosen)
    return text[:begin] + text[end:]


def _twice(text: str, chosen: random.Random, _: Sequence[str]) -> str:
    begin, end = _span(text, chosen)
    at = chosen.randrange(len(text) + 1)
    return text[:at] + text[begin:end] + text[at:]


def _spliced(text: str, chosen: random.Random, others: Sequence[str]) -> str:
    other = chosen.choice(others)
    begin, end = _span(other, chosen, 2000)
    at = chosen.randrange(len(text) + 1)
    return text[:at] + other[begin:end] + text[at:]


def _cut(text: str, chosen: random.Random, _: Sequence[str]) -> str:
    return text[: chosen.randrange(len(text) + 1)]


def _lines_swapped(text: str, chosen: random.Random, _: Sequence[str]) -> str:
    lines = text.split("\n")
    one, other = chosen.randrange(len(lines)), chosen.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return "\n".join(lines)


def _indented(text: str, chosen: random.Random, _: Sequence[str]) -> str:
    lines = text.split("\n")
    at = chosen.randrange(len(lines))
    lines[at] = chosen.choice(("  ", "\t", "    ", "> ", "- ", " ")) + lines[at].lstrip() * chosen.randrange(3)
    return "\n".join(lines)


def _nested(text: str, chosen: random.Random, _: Sequence[str]) -> str:
    at = text.find("\n", chosen.randrange(len(text) + 1)) + 1
    return text[:at] + chosen.choice(DEEP) * chosen.choice((30, 1000, 20000)) + text[at:]


def _long(text: str, chosen: random.Random, _: Sequence[str]) -> str:
    at = chosen.randrange(len(text) + 1)
    return text[:at] + chosen.choice(SIGNS) * chosen.choice((500, 5000, 33000)) + text[at:]


def _line_ends(text: str, chosen: random.Random, _: Sequence[str]) -> str:
    return text.replace("\n", chosen.choice(("\r\n", "\r", "\n\n", " \n", "\n \t\n", "\u2028")))


def _field(text: str, chosen: random.Random, _: Sequence[str]) -> str:
    at = text.find("\n", chosen.randrange(len(text) + 1)) + 1
    return f"{text[:at]}- **{chosen.choice(LABELS)}:** {chosen.choice(VALUES)}\n{text[at:]}"


MUTATIONS: tuple[Mutation, ...] = (
    *(_inserted, _replaced, _without, _twice, _spliced, _cut, _lines_swapped, _indented, _line_ends, _field, _field),
    *(_inserted, _replaced, _without, _nested, _long),
)


def mutated(seeds: Sequence[str], chosen: random.Random) -> bytes:
    """Return a seed after one to four changes; sometimes with bytes that are not UTF-8."""
    text = chosen.choice(seeds)
    for _ in range(chosen.choice((1, 1, 2, 4))):
        text = chosen.choice(MUTATIONS)(text, chosen, seeds)
    data = text.encode("utf-8", "surrogatepass")
    if chosen.random() < 0.1 and data:
        at = chosen.randrange(len(data))
        data = data[:at] + chosen.randbytes(chosen.randrange(1, 5)) + data[at + 1 :]
    return b"\xef\xbb\xbf" + data if chosen.random() < 0.05 else data


def generated(chosen: random.Random) -> bytes:
    """A plan put together from fields and values that mostly do not fit one another."""
    count = chosen.randrange(1, 8)
    tasks = "".join(_task(number, chosen) for number in range(1, count + 1))
    keys = "".join(chosen.sample(_KEYS, chosen.randrange(4)))
    head = f'---\ntype: plan\nphase: "1"\nplan: "01"\ntitle: T\ngoal: G\n{keys}---\n\n'
    return (head + chosen.choice(("## Tasks\n\n", "## Tasks\n\n", "", "# A\n\n")) + tasks).encode()


_KEYS = (
    "requirements: {REQ-1: One, REQ-2: Two}\n",
    "mode: strict\n",
    "scope: {root: src, protected: ['*.toml', '**']}\n",
    "invariants: [{id: INV-1, text: t, check: 'test -d .'}]\n",
    "non_goals: [{id: NG-1, text: t, paths: ['a/**']}]\n",
    "success_criteria: [{text: t, check: make}, {text: u, human: true}]\n",
    "setup: [{service: s, why: w, env: [A]}]\n",
    "depends_on: ['01']\n",
    "limits: {files: 3}\n",
    "assumptions: [a, 1, {b: c}]\n",
    "x-more: {a: [1, 2]}\n",
)


def _task(number: int, chosen: random.Random) -> str:
    fields = "".join(f"- **{chosen.choice(LABELS)}:** {chosen.choice(VALUES)}\n" for _ in range(chosen.randrange(1, 7)))
    shape = chosen.randrange(4)
    if shape == 0:
        return f"- [ ] T1-{number:02d} Box\n  text\n\n"
    if shape == 1:
        return f"```yaml task\nid: T1-{number:02d}\ntitle: Y\nfiles: {{create: [a{number}]}}\nacceptance: [x]\n```\n\n"
    accepted = "- **Acceptance:**\n  - [ ] it holds — check: `true`\n" if chosen.random() < 0.8 else ""
    return f"### T1-{number:02d}: Task\n\nWords.\n\n{fields}{accepted}\n"
