"""A plan that does again what a stretch of a repository's history did: a task a commit, steps with its bytes.

Executed on a checkout of the first commit, every task has to end in the tree of its commit.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.history import commits
from tests.history.commits import LINK, SUBMODULE, Change, Commit

_ONE_CHECK_A_PATH = 20
_LONGEST_CHECK = 16_000
_MODES = {"100644": "644", "100755": "755"}


def plan(root: Path, base: str, tip: str) -> str:
    """The text of a plan with one task for each first-parent commit after `base` up to `tip`."""
    stretch = commits.between(root, base, tip)
    parts = ['---\ntype: plan\nphase: "1"\nplan: "01"\ntitle: History\ngoal: The history, again\n---\n\n## Tasks\n']
    for number, commit in enumerate(stretch, 1):
        parts.append(_task(root, commit, f"T1-{number:02}", f"T1-{number - 1:02}" if number > 1 else ""))
    return "\n".join(parts)


def _task(root: Path, commit: Commit, id: str, before: str) -> str:
    files: dict[str, list[str]] = {}
    for change in commit.changes:
        # Quotes around a whole path are taken off, so blanks at its ends and quotes of its own stay.
        files.setdefault(change.verb, []).append(f'"{change.path}"')
    proofs = enumerate(checks(commit.changes), 1)
    contents = commits.blobs(root, [c.oid for c in commit.changes if not c.deleted])
    lines = [
        "```yaml task",
        f"id: {id}",
        f"title: {_json(commit.subject.strip() or '(no subject)')}",
        f"depends_on: [{before}]",
        *(["files:", *(f"  {verb}: {_json(paths)}" for verb, paths in files.items())] if files else ["files: none"]),
        "acceptance:",
        *(f"- {_json({'text': f'As in the history, {n}', 'check': command})}" for n, command in proofs),
        "```",
        "",
        "```yaml steps",
        *(f"- {_json(step)}" for step in steps(root, commit, contents)),
        "```",
        "",
    ]
    return "\n".join(lines)


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


def checks(changes: Sequence[Change]) -> list[str]:
    """Return commands that succeed if the working tree has the bytes of the commit."""
    if not changes:
        return ["true"]
    ones = [_check(change) for change in changes]
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


def _check(change: Change) -> str:
    name = _word(change.path)
    if change.deleted:
        return f"test ! -f {name} && test ! -h {name}"
    if change.after == LINK:
        return f"test -h {name}"
    return f"git hash-object --no-filters {name} | grep -qx {change.oid}"


def _word(path: str) -> str:
    """One shell word; bytes that are not UTF-8 as octal escapes of printf."""
    safe = f"./{path}" if path.startswith("-") else path
    if not re.search("[\ud800-\udfff]", safe):
        return shlex.quote(safe)
    # A command substitution eats newlines at the end.
    body = safe.rstrip("\n")
    spelled = "".join(chr(b) if chr(b).isascii() and chr(b).isalnum() else f"\\{b:03o}" for b in os.fsencode(body))
    return f"\"$(printf '{spelled}')\"" + (shlex.quote(safe[len(body) :]) if body != safe else "")


def _json(value: object) -> str:
    """JSON on one line that UTF-8 can hold; YAML reads it too."""
    text = json.dumps(value, ensure_ascii=False)
    return re.sub("[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]", lambda m: f"\\u{ord(m[0]):04x}", text)
