"""Writes a plan that does again what a stretch of a repository's history did: a task a commit, steps with its bytes.

    python -m tests.history.plan_from_history REPO BASE TIP OUT [NOTATION]

Executed on a checkout of BASE, every task has to end in the tree of its commit.
"""

from __future__ import annotations

import base64
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.history import commits, shell
from tests.history.commits import LINK, SUBMODULE, Change, Commit

HEADING, FENCE, CHECKLIST = "heading", "fence", "checklist"
_ONE_CHECK_A_PATH = 20
_LONGEST_CHECK = 16_000
_MODES = {"100644": "644", "100755": "755"}


@dataclass(frozen=True, slots=True)
class Style:
    """How the same contract is written down: notation of tasks, kind of check, escapes in JSON, fence of the steps."""

    notation: str = HEADING
    compare: bool = False
    ascii: bool = False
    steps: str = "yaml steps"


def plan(root: Path, base: str, tip: str, style: Style | None = None, phase: str = "1") -> str:
    """The text of a plan with one task for each first-parent commit after `base` up to `tip`."""
    chosen = style or Style()
    stretch = commits.between(root, base, tip)
    width = max(2, len(str(len(stretch))))
    head = f'---\ntype: plan\nphase: "{phase}"\nplan: "01"\ntitle: History\ngoal: The history, again\n---\n\n## Tasks\n'
    parts = [head]
    for number, commit in enumerate(stretch, 1):
        task, before = f"T{phase}-{number:0{width}}", f"T{phase}-{number - 1:0{width}}" if number > 1 else "none"
        parts.append(_task(root, commit, task, before, chosen))
    return "\n".join(parts)


def _task(root: Path, commit: Commit, task: str, before: str, style: Style) -> str:
    present = [c.oid for c in commit.changes if not c.deleted]
    contents = commits.blobs(root, present)
    title = commit.subject.strip() or "(no subject)"
    odd = not all(shell.is_plain(c.path) for c in commit.changes) or not _is_plain_title(title)
    notation = FENCE if odd else style.notation
    write = {HEADING: _heading, CHECKLIST: _checklist, FENCE: _fence}[notation]
    claims = [(c.verb, c.path) for c in commit.changes]
    text = write(task, title, before, claims, checks(commit.changes, compare=style.compare))
    lines = [_json(step, only_ascii=style.ascii) for step in steps(root, commit, contents)]
    mark = "- " if style.steps == "yaml steps" else ""
    fence = [f"```{style.steps}", *(mark + line for line in lines), "```", ""]
    return text + "\n".join(["", *fence])


def _is_plain_title(title: str) -> bool:
    return shell.is_plain(title) and not re.search(r"<!--|^#|#$|^[-:—–]|`|^\[", title)


def _heading(task: str, title: str, before: str, claims: Sequence[tuple[str, str]], proofs: Sequence[str]) -> str:
    lines = [f"### {task}: {title}", "", f"- **Depends on:** {before}"]
    lines += ["- **Files:**" if claims else "- **Files:** none", *(f"  - {verb} {shell.code(p)}" for verb, p in claims)]
    lines += ["- **Acceptance:**"]
    lines += [f"  - [ ] As in the history, {n} — check: {shell.code(one)}" for n, one in enumerate(proofs, 1)]
    return "\n".join([*lines, ""])


def _checklist(task: str, title: str, before: str, claims: Sequence[tuple[str, str]], proofs: Sequence[str]) -> str:
    first, _, rest = _heading(task, title, before, claims, proofs).partition("\n\n")
    return first.replace(f"### {task}: ", f"- [ ] {task} ") + "\n" + re.sub("^(?=.)", "  ", rest, flags=re.MULTILINE)


def _fence(task: str, title: str, before: str, claims: Sequence[tuple[str, str]], proofs: Sequence[str]) -> str:
    files: dict[str, list[str]] = {}
    for verb, path in claims:
        # Quotes around a whole path are taken off, so blanks at its ends and quotes of its own stay.
        files.setdefault(verb, []).append(f'"{path}"')
    lines = ["```yaml task", f"id: {task}", f"title: {_json(title)}"]
    lines += [f"depends_on: [{'' if before == 'none' else before}]"]
    lines += ["files:", *(f"  {verb}: {_json(paths)}" for verb, paths in files.items())] if files else ["files: none"]
    lines += [
        "acceptance:",
        *(f"- {_json({'text': f'As in the history, {n}', 'check': c})}" for n, c in enumerate(proofs, 1)),
    ]
    return "\n".join([*lines, "```", ""])


def steps(root: Path, commit: Commit, contents: Mapping[str, bytes]) -> Iterator[dict[str, object]]:
    """Deletions first, so that files and folders can change places; links as a patch, which alone can say them."""
    submodules = [c.path for c in commit.changes if SUBMODULE in {c.before, c.after}]
    if submodules:
        message = f"{commit.oid} changes submodules, which a plan cannot say: {submodules}"
        raise ValueError(message)
    for change in commit.changes:
        if change.deleted or (change.after == LINK != change.before != commits.ABSENT):
            yield _step("delete_file", f"remove {change.path}", path=change.path)
    for change in commit.changes:
        if change.after in _MODES:
            written = _content(contents[change.oid])
            yield _step("write_file", "write", path=change.path, **written, mode=_MODES[change.after])
    if not commit.changes:
        yield _step("run", "an empty commit changes nothing", command="true")
    links = [c for c in commit.changes if c.after == LINK]
    if links:
        yield _step(
            "apply_patch", "set the links", patch="".join(_link_patch(root, commit, c, contents) for c in links)
        )


def _step(tool: str, intent: str, **arguments: object) -> dict[str, object]:
    return {"tool": tool, "intent": intent, "arguments": arguments}


def _content(data: bytes) -> dict[str, object]:
    try:
        return {"content": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"content_base64": base64.b64encode(data).decode("ascii")}


def _link_patch(root: Path, commit: Commit, change: Change, contents: Mapping[str, bytes]) -> str:
    """An earlier step deleted the file that becomes a link, so the patch creates it."""
    if change.before == LINK:
        arguments = ("diff-tree", "-p", "--no-color", "--full-index", commit.parent, commit.oid, "--", change.path)
        return commits.git(root, "--literal-pathspecs", *arguments).decode("utf-8", "surrogateescape")
    name = _quoted(change.path)
    target = contents[change.oid].decode("utf-8", "surrogateescape")
    lines = target.split("\n")
    ended = lines[-1] == ""
    body = [f"+{line}\n" for line in (lines[:-1] if ended else lines)]
    tail = "" if ended else "\\ No newline at end of file\n"
    a, b = (f'"{side}/{name[1:]}' if name[0] == '"' else f"{side}/{name}" for side in "ab")
    head = f"diff --git {a} {b}\nnew file mode 120000\nindex {'0' * 40}..{change.oid}\n"
    return (
        f"{head}--- /dev/null\n+++ {b}{'	' if ' ' in name else ''}\n@@ -0,0 +1,{len(body)} @@\n{''.join(body)}{tail}"
    )


def _quoted(path: str) -> str:
    """A path as git writes it in a patch."""
    if re.fullmatch(r'[^\x00-\x1f\x7f"\\\x80-\U0010ffff]+', path):
        return path
    spelled = (chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:03o}" for b in os.fsencode(path))
    return '"' + "".join(spelled) + '"'


def checks(changes: Sequence[Change], *, compare: bool = False) -> list[str]:
    """Return commands that succeed if the working tree has the bytes of the commit."""
    if not changes:
        return ["true"]
    ones = [_check(change, compare=compare) for change in changes]
    if len(ones) <= _ONE_CHECK_A_PATH:
        return ones
    batches, size = [[ones[0]]], len(ones[0])
    for one in ones[1:]:
        if size + len(one) > _LONGEST_CHECK:
            batches.append([])
            size = 0
        batches[-1].append(one)
        size += len(one) + 4
    return [" && ".join(batch) for batch in batches]


def _check(change: Change, *, compare: bool) -> str:
    name = shell.word(change.path)
    if change.deleted:
        return f"test ! -f {name} && test ! -h {name}"
    if change.after == LINK:
        return f"test -h {name}"
    if compare:
        return f'test "$(git hash-object --no-filters {name})" = {change.oid}'
    return f"git hash-object --no-filters {name} | grep -qx {change.oid}"


def _json(value: object, *, only_ascii: bool = False) -> str:
    """JSON on one line that UTF-8 can hold; YAML reads it too."""
    text = json.dumps(value, ensure_ascii=only_ascii)
    return re.sub("[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]", lambda m: f"\\u{ord(m[0]):04x}", text)


def main(arguments: Sequence[str]) -> int:
    if len(arguments) not in {4, 5}:
        sys.stderr.write("usage: python -m tests.history.plan_from_history REPO BASE TIP OUT [NOTATION]\n")
        return 2
    root, base, tip, out, *notation = arguments
    text = plan(Path(root), base, tip, Style(notation[0] if notation else HEADING))
    Path(out).write_bytes(text.encode("utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
