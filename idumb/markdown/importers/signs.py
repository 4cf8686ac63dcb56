"""What looks like a task, a mark, an id, a status, a dependency or a path, for all formats.

A reader notes the signs that it used, by line. The others are listed, so no reader can lose a line in silence.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from idumb.domain import paths, wording
from idumb.domain.plans.source_tasks import RANGE
from idumb.markdown.syntax import inline

BOX, MARK, TASK, MENTION, NEED, STATUS = "a box", "a mark", "a task", "other ids", "a dependency", "a status"
ALL = (BOX, MARK, TASK, MENTION, NEED, STATUS)

# How a text says that one task needs another: with words that mean nothing else, and with others.
_CERTAIN = r"depend(?:s|ent)?[ _-](?:up)?on|blocked[ _-]by"
_NEEDING = (
    rf"(?<![a-z\d_])(?:{_CERTAIN}|dependenc(?:y|ies)|depend(?:s|ent)?|requires?|after|needs?|relies[ ]on"
    r"|waits?[ ](?:for|on)|deps?)"
)
_LEAD = r"[ \t>|]*(?:#{1,7}[ \t]*)?"
_MARKER = r"(?:[-*+•‣·–—]|\(?\w{1,3}[.)])"
_BOX = re.compile(rf"{_LEAD}(?:{_MARKER}[ \t]*)?[*_~]{{0,3}}\\?\[(?:\s{{0,3}}|\s?[^\s\[\]`^]{{1,2}}\s?)\\?\](?![(\[:])")
_MARKS = re.compile(r"\[[ xX✓✔]\]|[☐☑☒✅✔✓⬜🔲]")
_STATUS = re.compile(
    rf"^{_LEAD}(?:{_MARKER}[ \t]+)?[*_]{{0,3}}(?:status|state|lane|done|progress|completed?)[*_]{{0,3}}[ \t]*:"
    r"|\[(?:done|wip|in[ -]progress|completed?|cancell?ed|skipped|blocked|deferred)\]"
    r"|\((?:done|wip|in[ -]progress|completed?|cancell?ed|skipped|blocked|deferred)\)",
    re.IGNORECASE,
)
_SHOUTED = re.compile(r"\b(?:DONE|COMPLETED?|SKIPPED|CANCELL?ED|WIP|DEFERRED)\b|~~\S[^~]*~~")
DONE = re.compile(r"(?<!\bNOT )\b(?:DONE|COMPLETED?)\b|[\[(](?:done|completed?)[\])]|~~", re.IGNORECASE)
SHELVED = re.compile(
    r"[\W_]*(?:deferred|postponed|cancell?ed|skipped|abandoned|blocked|out of scope|won.?t do)\b", re.IGNORECASE
)
"""A heading over tasks that are not to be done, or not now."""
_PART = r"\b(?:us|(?:user[ ])?story|phase|step|task|wp|work[ ]package|milestone|epic|slice)[ -]?\d[\d.]*"
_NEED = re.compile(
    rf"(?<![a-z\d_])(?:{_CERTAIN})(?![a-z\d_])"
    rf"|{_PART}[ \t*]*(?:→|-+>|=+>|⇒|←|<-+|requires|needs|after|before|blocks|precedes|follows)[ \t*]*{_PART}",
    re.IGNORECASE,
)
_LABEL = re.compile(
    rf"{_LEAD}(?:{_MARKER}[ \t]+)?[*_]{{0,3}}(?:dependenc(?:y|ies)|{_CERTAIN}|blocks|requires|needs|after"
    r"|parallel with)(?![a-z\d_])[^:\n]{0,20}:[*_]{0,3}[ \t]*"
    r"(?P<value>\S.*)",
    re.IGNORECASE,
)
_NOTHING = re.compile(
    r"[\W_]*(?:none|nothing|no\b.{0,20}\bdependenc(?:y|ies)|n/?a|\[\])\b[\W_]*|[-—–\[\]\s.]*\Z", re.IGNORECASE
)
_HEADED = r"[ \t]*#{1,6}[ \t]+[*_]{0,3}"
_TASK = re.compile(rf"{_HEADED}task[ \t]+#?\d+(?:\.\d+)*[ \t]*[.:)—–-]", re.IGNORECASE)
_NUMBERED = re.compile(rf"{_HEADED}(?:(?:step|task|phase)[ \t]+|[A-Z]{{1,3}}-?)?\d+(?:\.\d+)*[.:)—–]", re.IGNORECASE)
_KEY = re.compile(
    r"[ \t]*(?:-[ \t]+)?[\"']?(?:status|state|lane|done|completed|depend(?:s_?on|encies|ency|s)|block(?:ed(?:_?by)?|s)"
    r"|requires|prerequisites?|parent\w*|subtasks?(?:_?ids)?)[\"']?[ \t]*:[ \t]*+"
    r"(?!(?:\[[ \t]*\]|null|~|none|''|\"\")?[ \t]*(?:#|$))",
    re.IGNORECASE,
)


def signs_in(line: str, ids: References | None, *, headings: bool) -> Iterator[str]:
    """Yield the signs in a line. With `headings`, a numbered heading is a task."""
    bare = inline.masked(line)
    if _BOX.match(bare):
        yield BOX
    if _MARKS.search(bare):
        yield MARK
    if (ids is not None and ids.start.match(line)) or (_NUMBERED if headings else _TASK).match(line):
        yield TASK
    if ids is not None and ids.named and ids.id.search(line):
        yield MENTION
    label = _LABEL.match(line)
    named = label is not None and ids is not None and ids.id.search(label["value"]) is not None
    if named or (_NEED.search(line) and not (label is not None and _NOTHING.match(label["value"]))):
        yield NEED
    if _STATUS.search(bare) or _SHOUTED.search(bare):
        yield STATUS


def in_front_matter(line: str) -> Iterator[str]:
    if re.match(r"[ \t]*(?:-[ \t]+)?content[ \t]*:", line):
        yield TASK
    if _KEY.match(line):
        yield STATUS if re.match(r"\W*(?:status|state|lane|done|completed)", line, re.IGNORECASE) else NEED


def row(line: str, unread: list[str], *, used: bool) -> str:
    """Return a line as it is listed, and if a part of it was used, what was not."""
    text = wording.truncate(line.strip())
    return f"{text} ({wording.listed(unread)} not read)" if used else text


# References to other tasks: lists and ranges of ids, after words such as "depends on" or a label.
_SEPARATOR = r"[ \t]*(?:,[ ]?(?:and|&)\b|[,;/+&]|\b(?:and|plus)\b)[ \t]*"
_RANGE = r"[ \t]*(?:\.{2,3}|…|[-–—~]|\b(?:to|through|thru|until)\b)[ \t]*"
_BRACKETS = r"\((?>(?:[^()]|\([^()]*\))*)\)"
_NOT = re.compile(r"(?:\b(?:not|no|never|without|independent|cannot)\b|n't\b)[^.;,()]*\Z", re.IGNORECASE)
_IN_BRACKETS = re.compile(_BRACKETS)
_MORE = re.compile(rf"{_SEPARATOR}\d", re.IGNORECASE)
_ITEM = re.compile(r"\s*(?:[-*+•][ \t]+|\d+[.)][ \t]+)?")
_QUOTES = re.compile(r"[`*]")


class References:
    """Finds references to the ids of a format. An end of a range may leave out what all ids begin with: `T001-003`.

    `named`: a text that only names one is worth a look.
    """

    def __init__(self, id: str, *, named: bool = True) -> None:
        one = rf"({id})(?!\w)(?:{_RANGE}({id}|\d+)(?!\w))?"
        bare = re.sub(r"\((?!\?)", "(?:", one)
        listed = rf"(?:tasks?[ ])?{bare}(?:[ \t]*{_BRACKETS})?"
        listed = rf"(?P<list>{listed}(?:{_SEPARATOR}{listed})*)"
        self.id = re.compile(rf"(?<![\w.-]){id}(?!\w)", re.IGNORECASE)
        self.start = re.compile(
            rf"{_LEAD}(?:{_MARKER}[ \t]+)?(?:[*_~`]{{0,3}}\\?\[[^\]\n]{{0,3}}\\?\])?[ \t*_~`(\[]*{id}(?!\w)",
            re.IGNORECASE,
        )
        self.named = named
        self._one, self._list = re.compile(one, re.IGNORECASE), re.compile(listed, re.IGNORECASE)
        self._phrase = re.compile(
            rf"{_NEEDING}[ \t]*+:?[ \t]*+(?:(?:completion[ ]of|on|the)[ ])?{listed}", re.IGNORECASE
        )

    def phrases(self, line: str, own: str = "") -> tuple[tuple[str, ...], set[str]]:
        """Return the ids after words such as "depends on", and the signs that were read; `own` is the line's own id."""
        line = _QUOTES.sub("", line)
        ids: list[str] = []

        def taken(match: re.Match[str]) -> str:
            if _NOT.search(line, max(match.start() - 40, 0), match.start()):
                return match[0]
            ids.extend(self._of(match["list"]))
            return self._left(match)

        rest = self._phrase.sub(taken, line)
        rest = rest.replace(own, " ", 1) if own else rest
        return tuple(ids), {NEED, MENTION}.difference(signs_in(rest, self, headings=False))

    def statement(self, text: str) -> tuple[tuple[str, ...], set[str]]:
        """Return the ids of a text that is a list of them, with the signs that were read; it may say none."""
        text, used = _ITEM.sub("", _QUOTES.sub("", text), count=1), {NEED, MENTION, TASK}
        if _NOTHING.match(text):
            return (), used.difference(signs_in(_IN_BRACKETS.sub(" ", text), self, headings=False))
        whole = self._phrase.match(text) or self._list.match(text)
        if whole is None:
            return (), set()
        rest = self._left(whole) + text[whole.end() :]
        return self._of(whole["list"]), used.difference(signs_in(rest, self, headings=False))

    def _left(self, match: re.Match[str]) -> str:
        """Return what is not read of a list: what is in brackets; all of it if a number follows, as in `T001, 2`."""
        more = _MORE.match(match.string, match.end())
        return match[0] if more else " ".join(["", *_IN_BRACKETS.findall(match["list"]), ""])

    def _of(self, text: str) -> tuple[str, ...]:
        ids = self._one.finditer(_IN_BRACKETS.sub(" ", text))
        return tuple(f"{m[1]}{RANGE}{m[2]}" if m[2] else m[1] for m in ids)


# Paths and ids

_WORDS = re.compile(r"\w+")
_LONGEST_NAME = 48
_LETTER = r"[^\W\u2e80-\u9fff\uac00-\ud7af]"  # text of East Asia has no spaces around a path
_PATH = re.compile(
    rf"`([^`\s]+[./][^`\s]*)`|(?<![/@:.~-])(?<!{_LETTER})((?:(?:{_LETTER}|[.@-])+/)+(?:{_LETTER}|[.@-])+\.{_LETTER}+)"
    rf"(?!{_LETTER}|/)"
)
# Endings of files; without one of them, a name without a folder may be a method such as `console.log`.
_USUAL = re.compile(
    r"\w\.(?:c|cc|cfg|[cm]?[jt]sx?|conf|cpp|cs|css|csv|dart|env|exs?|go|gradle|graphql|h|hpp|html|ini|ipynb|java|jpg|json[c5]?"
    r"|kts?|less|lock|lua|m|mdc?|mdx|php|pl|png|prisma|properties|proto|ps1|pyi?|r|rb|rs|rst|s[ac]ss|scala|sh|sol|sql"
    r"|sum|svelte|svg|swift|tf|toml|txt|vue|wasm|xml|ya?ml|zig)\Z"
)


def paths_in(text: str) -> tuple[str, ...]:
    """Return what looks like paths of files in a text, in order."""
    if "`" not in text and "/" not in text:
        return ()
    words = (word for word in text.split() if "/" in word or "`" in word)
    named = (match[1] or match[2] for word in words for match in _PATH.finditer(word))
    found = (paths.PLACE_IN_FILE.sub("", each.rstrip(".,;:)")).removeprefix("./") for each in named)
    return tuple(dict.fromkeys(filter(_is_file, found)))


def _is_file(path: str) -> bool:
    if paths.problem(path) or path.startswith(("http", "-", "@", "~")) or re.search(r"[(){}<>$=*|\\,]", path):
        return False
    return "/" in path.strip("/") or _USUAL.search(path[-12:]) is not None


def inferred(files: tuple[str, ...]) -> tuple[str, ...]:
    """Return what is inferred if files were found in a text."""
    return ("Files: paths in the text",) if files else ()


def bare_id(id: str) -> str:
    """Return an id without case, and without the zeros that fill up its numbers."""
    return re.sub(r"(?<!\d)0+(?=\d)", "", id.casefold())


def id_of_words(text: str) -> str:
    """Return the words of a text, joined by `-`; a long text is cut and gets a digest."""
    whole = "-".join(_WORDS.findall(text.casefold()))
    if whole and len(whole) <= _LONGEST_NAME:
        return whole
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{whole[: _LONGEST_NAME - 9].rstrip('-')}-{digest}".lstrip("-")
