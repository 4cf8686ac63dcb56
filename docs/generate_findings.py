"""Write the lists of docs/findings.md from the catalog, the examples of the checks and the test cases of the format.

Run `python docs/generate_findings.py`. A test checks the page, and that every example shows its finding.
"""

from __future__ import annotations

import pathlib
import re
import sys

DOCS = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

from idumb.domain import catalog  # noqa: E402
from idumb.domain.finding import Row  # noqa: E402
from idumb.domain.intake import registry, self_check  # noqa: E402
from tests.docs import shown_findings  # noqa: E402
from tests.docs.check_examples import EXAMPLES  # noqa: E402

PAGE = DOCS / "findings.md"
SHOWN = 100

OF_OTHERS = ("dialect", "config", "policy", "workflow", "script")


def page(text: str) -> str:
    """Return the page with its lists made again."""
    lists = {"questions": _questions, "checks": _checks, "together": _together, "format": _format, "others": _others}
    part = re.compile(r"(<!-- (\w+): begin -->\n).*?(?=<!-- \2: end -->)", re.DOTALL)
    return part.sub(lambda found: found[1] + "\n".join([*lists[found[2]](), ""]), text)


def _questions() -> list[str]:
    return [f"{number}. {one.question}" for number, one in enumerate(self_check.QUESTIONS, 1)]


def _checks() -> list[str]:
    cells = [
        f"| `{code}` | {_severity(catalog.ROWS[code])} | {EXAMPLES[code].means.replace('|', chr(92) + '|')} |"
        for code in registry.CODES
    ]
    return ["| code | severity | means |", "|---|---|---|", *cells]


def _severity(row: Row) -> str:
    if row.guided == row.strict:
        return row.guided
    return "strict" if row.guided == "warning" else "only strict"


def _together() -> list[str]:
    rows = [f"| `{code}` | {phase.shown} |" for code, phase in shown_findings.TOGETHER.items()]
    return [
        "| code | example |",
        "|---|---|",
        *rows,
        '| `plan.other-folder` | a plan says `phase: "2"` in the folder `1` |',
        "| `plan.note` (warning) | `NOTES-PLAN.md` has only text |",
        "| `plan.misnamed` (warning) | a plan is called `02-plan.md`, `1-PLAN-02-page.md` or `plans/PLAN-02.md` |",
    ]


def _format() -> list[str]:
    rows = []
    for found in shown_findings.of_format():
        marked = " (warning)" if found.severity == "warning" else ""
        rows.append(f"| `{found.code}`{marked} | {_safe(found.message)} |")
    return ["| code | message |", "|---|---|", *rows]


def _others() -> list[str]:
    by_message: dict[str, list[str]] = {}
    for code in sorted(code for code in catalog.ROWS if code.partition(".")[0] in OF_OTHERS):
        row = catalog.ROWS[code]
        text = row.fix if row.message == "{why}" else row.message
        by_message.setdefault(_words(text, row), []).append(f"`{code}`")
    cells = [f"| {', '.join(codes)} | {message} |" for message, codes in by_message.items()]
    return ["| code | message |", "|---|---|", *cells]


def _words(text: str, row: Row) -> str:
    """Return a text with the names of what it is filled with in upper case."""
    filled = {"accepted": row.accepted or "what is accepted", "why": "what is wrong"}
    return re.sub(r"\{(\w+)\}", lambda word: filled.get(word[1], word[1].upper()), text).replace("|", "\\|")


def _safe(text: str) -> str:
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return (shown if len(shown) <= SHOWN else shown[: SHOWN - 1] + "…").replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.exit(0)
