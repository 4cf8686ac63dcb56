"""The commands of a text for `/bin/sh -c`, as far as the text shows them; nothing is expanded or run.

Quoted text, comments and here-documents are data. A command substitution outside single quotes is a nested script, and
so is the text that `sh -c` receives.
"""

from __future__ import annotations

import functools
import posixpath
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from idumb.domain.plans import programs

MOST_NESTED = 8
ENDS: Mapping[str, str] = {"(": ")", "{": "}", "if": "fi", "case": "esac", "for": "done"}
"""What a script groups, by the word that begins it, with the word that ends it."""
_RESERVED = frozenset({*ENDS, *ENDS.values(), "then", "elif", "else", "do"}) - {"(", ")"}
_UNREADABLE = frozenset({"while", "until", "select"})
_WORDS_OF_SHELL = _RESERVED | _UNREADABLE | {"!"}
_EXPANSION = r"(?P<expansion>\$\(|`[^`]*`?|\$\{[^}]*\}?|\$\w*)"
_TOKEN = re.compile(
    r"(?P<nothing>\\\n|(?<![^\s;&|()<>])#[^\n]*)|(?P<plain>[^'\"\\`$ \t\r;&|()<>\n*?\[]+|[*?\[])|(?P<gap>[ \t\r]+)"
    r"|(?P<single>'[^']*'?)|(?P<escaped>\\(?s:.)?)|(?P<quotes>\")|" + _EXPANSION + r"|(?P<operator>;;|&&|\|\||\|&|<<<"
    r"|<<-?[ \t]*(?:'[^'\n]*'|\"[^\"\n]*\"|[^\s'\"|&;()<>]+)|>>|>\||[<>]&|<>|[;&|()<>\n])"
)
_IN_QUOTES = re.compile(r"(?P<quotes>\")|(?P<escaped>\\(?s:.)?)|(?P<plain>[^\"\\`$]+)|" + _EXPANSION)
_ASSIGNED = re.compile(r"[A-Za-z_]\w*\+?=")
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)")


class Word(NamedTuple):
    """`text` is without quotes. `literal`: no expansion changes it. `quoted`: any part of it is quoted."""

    text: str
    literal: bool = True
    quoted: bool = False


class Command(Struct, frozen=True, dict=True):
    """A simple command: its words, the operator `after` it, whether `!` is before it, and where its output goes.

    `groups` are the numbers of the subshells `( … )` around it.
    """

    words: tuple[Word, ...]
    after: str = ""
    negated: bool = False
    targets: tuple[Word, ...] = ()
    groups: tuple[int, ...] = ()

    @property
    def texts(self) -> list[str]:
        return [word.text for word in self.words]

    @functools.cached_property
    def _parted(self) -> tuple[list[Word], list[Word]]:
        """The launchers, such as `env` and `timeout`, and the words after them; no assignment is in either."""
        launchers, rest = list[Word](), [*self.words]
        while rest:
            if _ASSIGNED.match(rest[0].text):
                rest.pop(0)
            elif rest[0].text == "command" and rest[1:] and rest[1].text in ("-v", "-V"):
                return launchers, rest[:1]
            elif programs.has_trait(rest[0].text, programs.LAUNCHER):
                launchers.append(rest.pop(0))
                valued = programs.LAUNCHER_OPTIONS.get(launchers[-1].text.rpartition("/")[2], "").split()
                while rest and (rest[0].text.startswith("-") or rest[0].text.rstrip("smhd").replace(".", "").isdigit()):
                    del rest[: 1 + (rest[0].text in valued)]
            else:
                break
        return launchers, rest

    @functools.cached_property
    def own(self) -> list[str]:
        """The words without assignments and launchers."""
        return [word.text for word in self._parted[1]]

    @property
    def text(self) -> str:
        return "! " * self.negated + " ".join(word or "''" for word in self.own)

    @functools.cached_property
    def program(self) -> str:
        return self.own[0].rpartition("/")[2] if self.own else ""

    @property
    def started(self) -> tuple[str, ...]:
        """The launchers and the program that they start, as in `env A=b make`."""
        launchers, rest = self._parted
        own = any(word.text.rpartition("/")[2] == "busybox" for word in launchers[-1:])  # it has its programs in it
        return tuple(word.text for word in (*launchers, *rest[: not own]) if word.literal and word.text)

    @property
    def is_filter(self) -> bool:
        """Whether it succeeds whatever it reads."""
        awk = self.program == "awk" and not any("exit" in word for word in self.own[1:])
        return programs.has_trait(self.program, programs.FILTER) or awk

    @property
    def is_sure(self) -> bool:
        """Whether it never fails."""
        return not self.own or programs.has_trait(self.program, programs.SURE)

    @property
    def decides(self) -> bool:
        """Whether the author of a check would expect it to fail."""
        return not (self.is_filter or self.is_sure or programs.has_trait(self.program, programs.ARRANGE))


class Mark(NamedTuple):
    """A word that begins, divides or ends a group, `if`, `case` or `for`; `of` is a pattern of `case`.

    One that ends it has the operator `after` it.
    """

    word: str
    after: str


class Script(Struct, frozen=True):
    """`commands` are the simple commands, in order; `branches` the words `if`, `case` and `||`.

    - `parts`: its own commands and what groups them; none if it waits in loops, defines functions, or pipes a group.
    - `variables`: those that the shell expands. `functions`: those that the script defines.
    """

    commands: tuple[Command, ...] = ()
    branches: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    parts: tuple[Command | Mark, ...] = ()

    @property
    def programs(self) -> tuple[str, ...]:
        """The programs that the text names, once each, without shell builtins and its own functions."""
        names = dict.fromkeys(name for command in self.commands for name in command.started)
        return tuple(name for name in names if name not in self.functions and name not in programs.NAMED["builtin"])


@functools.lru_cache(maxsize=16_384)  # several rules read each check of a plan, and a plan can have thousands
def read(text: str, depth: int = 0) -> Script:
    """Parse a command string with everything nested in it. It accepts text that a shell would reject."""
    scanner = _Scanner(text)
    scanner.scan()
    reader = _Reader()
    for token in scanner.tokens:
        reader.take(token)
    reader.end("")
    commands = tuple(reader.commands)
    inner = filter(None, (inner_script(command.texts) for command in commands))
    scripts = [*scanner.nested, *inner]
    below = [read(text, depth + 1) for text in scripts] if depth < MOST_NESTED else []
    return Script(
        (*commands, *(part for script in below for part in script.commands)),
        (*reader.branches, *(part for script in below for part in script.branches)),
        tuple(dict.fromkeys((*scanner.variables, *(part for script in below for part in script.variables)))),
        (*reader.functions, *(part for script in below for part in script.functions)),
        tuple(reader.parts) if reader.is_readable and not reader.open else (),
    )


def inner_script(words: Sequence[str]) -> str | None:
    """Return the script in the arguments of a shell, as in `bash -euc 'script'`, of `eval` or of `find -exec`."""
    if words and words[0] == "eval":
        return " ".join(words[1:])
    for n, word in enumerate(words):
        if word in ("-exec", "-execdir") and words[0].endswith("find"):
            return shlex.join(words[n + 1 :])
    at = next((n for n, word in enumerate(words) if programs.has_trait(word, programs.SHELL)), len(words))
    for n in range(at + 1, len(words) - 1):
        if re.fullmatch(r"-[a-z]*c", words[n]):
            return words[n + 1]
        if not words[n].startswith("-") and words[n - 1] not in ("-o", "+o", "-O"):
            return None
    return None


class _Scanner:
    """Splits a command string into words and operators, in one pass, without comments and here-documents."""

    def __init__(self, text: str) -> None:
        self.tokens: list[Word | str] = []
        self.nested: list[str] = []
        self.variables: list[str] = []
        self._text = text
        self._parts: list[str] = []
        self._is_literal, self._is_quoted = True, False
        self._documents: list[tuple[str, bool]] = []

    def scan(self) -> None:
        at, is_quoted = 0, False
        while at < len(self._text):
            match = (_IN_QUOTES if is_quoted else _TOKEN).match(self._text, at)
            kind, text = (str(match.lastgroup), match[0]) if match is not None else ("plain", self._text[at])
            at += len(text)
            if kind == "expansion":
                at = self._expansion(text, at)
            elif kind == "quotes":
                is_quoted = not is_quoted
                self._add("", is_quoted=True)
            elif is_quoted or kind in ("single", "escaped"):
                self._add(text.strip("'") if kind == "single" else text[kind == "escaped" :], is_quoted=True)
            elif kind == "operator":
                at = self._operator(text, at)
            elif kind == "gap":
                self._close()
            elif kind != "nothing":
                self._add(text, is_literal=text not in "*?[")
        self._close()

    def _add(self, text: str, *, is_literal: bool = True, is_quoted: bool = False) -> None:
        self._parts.append(text)
        self._is_literal &= is_literal
        self._is_quoted |= is_quoted

    def _close(self) -> None:
        if self._parts:
            self.tokens.append(Word("".join(self._parts), self._is_literal, self._is_quoted))
        self._parts, self._is_literal, self._is_quoted = [], True, False

    def _expansion(self, text: str, at: int) -> int:
        """Read what begins with `$` or a backquote, and return the index after it."""
        start = at - len(text)
        if text == "$(":
            at = _closing(self._text, at - 1)
            text = self._text[start:at]
            if text.startswith("$(("):
                self.variables += re.findall(r"[A-Za-z_]\w*", text)
            else:
                self.nested.append(text[2:-1])
        elif text[0] == "`":
            self.nested.append(text.strip("`"))
        elif (name := _VARIABLE.match(text)) is not None:
            self.variables.append(name[1])
        self._add(text, is_literal=False)
        return at

    def _operator(self, operator: str, at: int) -> int:
        """Read an operator, and return the index after it and its here-document."""
        if operator[0] in "<>" and "".join(self._parts).isdigit():
            self._parts = []  # a file descriptor
        self._close()
        if operator.startswith("<<") and operator != "<<<":
            mark = operator.lstrip("<").lstrip("- \t").strip("'\"\\")
            self._documents.append((mark, operator.startswith("<<-")))
            return at
        self.tokens.append(operator)
        for mark, is_indented in self._documents if operator == "\n" else ():
            lines = self._text[at:].splitlines(keepends=True)
            same = ((line.lstrip("\t") if is_indented else line).rstrip("\n") == mark for line in lines)
            count = next((number for number, is_end in enumerate(same, 1) if is_end), len(lines))
            at += sum(map(len, lines[:count]))
        self._documents = [] if operator == "\n" else self._documents
        return at


def _closing(text: str, start: int) -> int:
    """Return the index after the bracket that closes the one at `start`, skipping quotes."""
    depth, at = 0, start
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 1
        elif char in "'\"":
            end = text.find(char, at + 1)
            at = len(text) if end < 0 else end
        elif char in "()":
            depth += 1 if char == "(" else -1
            if depth == 0:
                return at + 1
        at += 1
    return len(text)


class _Reader:
    """Groups words and operators into simple commands."""

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.parts: list[Command | Mark] = []
        self.branches: list[str] = []
        self.functions: list[str] = []
        self.is_readable = True
        self.open: list[str] = []  # the words that would end what is not ended
        self._words: list[Word] = []
        self._targets: list[Word] = []
        self._negated = False
        self._skips = ""  # the construct being skipped: a redirection's target, `for x in …`, `case x`, a pattern
        self._cases = 0
        self._groups: tuple[int, ...] = ()
        self._opened = 0

    def take(self, token: Word | str) -> None:
        if isinstance(token, Word):
            self._word(token)
        else:
            self._operator(token)

    def end(self, operator: str) -> None:
        words, targets = tuple(self._words), tuple(self._targets)
        last = self.parts[-1] if self.parts else None
        if words or targets:
            self.commands.append(Command(words, operator, self._negated, targets, self._groups))
        if isinstance(last, Mark) and not last.after:
            self.parts[-1] = last._replace(after=operator or ";")
            self.is_readable &= not words and operator not in ("|", "|&", "(")
        elif words or targets:
            self.parts.append(self.commands[-1])
            self.is_readable &= operator != "("
        else:
            self.is_readable &= operator in ("", "\n", ";", ";;", "(", ")")
        self._words, self._targets, self._negated = [], [], False

    def _mark(self, word: str) -> None:
        last, is_end = self.parts[-1] if self.parts else None, self.open[-1:] == [word]
        is_piped = word in ENDS and isinstance(last, Command) and last.after in ("|", "|&")
        is_joined = last is None or last.after != ""
        is_stray = not self.open and word not in ENDS
        self.is_readable &= is_joined and not (is_piped or is_stray or self._negated or self._words or self._targets)
        if is_end:
            self.open.pop()
        elif word in ENDS:
            self.open.append(ENDS[word])
        self.is_readable &= is_end or word not in ENDS.values()
        self.parts.append(Mark(word, "" if is_end else word))

    def _forget_time(self) -> None:
        """Forget the shell's own `time`, which measures also what a group, `if`, `case` or a loop does."""
        if [word.text for word in self._words] in (["time"], ["time", "-p"]):
            self._words = []

    def _word(self, word: Word) -> None:
        if not word.quoted and word.text in _WORDS_OF_SHELL:
            self._forget_time()
        plain = None if word.quoted or self._words else word.text
        if self._skips in ("<", ">"):
            self._targets += [word] if self._skips == ">" else []
            self._skips = ""
        elif self._skips == "case":
            self._skips = "pattern" if word.text == "in" else "case"
        elif self._skips == "pattern":
            if plain == "esac":
                self._skips, self._cases = "", self._cases - 1
                self._mark("esac")
        elif self._skips == "for":
            pass
        elif plain in _RESERVED:
            self.branches += [plain] if plain in ("if", "case") else []
            self._skips = plain if plain in ("for", "case") else ""
            self._cases += (plain == "case") - (plain == "esac")
            self._mark(plain)
        elif plain in _UNREADABLE:
            self.is_readable = False
            self._skips = "for" if plain == "select" else ""
        elif plain == "!":
            self._negated = not self._negated
        else:
            self._words.append(word)

    def _operator(self, operator: str) -> None:
        if self._skips == "pattern":
            if operator == ")":
                self._skips = ""
                self._mark("of")
            return
        self.is_readable &= not (operator == "(" and self._skips != "")  # a program in the place of a file
        if operator[0] in "<>":
            self._skips = "<" if operator[0] == "<" or operator == ">&" else ">"
            return
        if operator == "(":
            self._forget_time()
        if operator == "(" and len(self._words) == 1 and not self._words[0].quoted:
            self.functions.append(self._words.pop().text)
            self.is_readable = False
        self.branches += ["||"] if operator == "||" else []
        self.end(operator)
        self._opened += operator == "("
        if operator in ("(", ")"):
            self._groups = (*self._groups, self._opened) if operator == "(" else self._groups[:-1]
            self._mark(operator)
        self._skips = "pattern" if operator == ";;" and self._cases > 0 else ""


def outside_paths(script: Script) -> tuple[str, ...]:
    """Return the paths outside the workspace that the words of a script show: above it, or absolute and written.

    What commands read elsewhere is not meant, nor are devices, printed text, patterns and the text of a link.
    """
    folders: dict[tuple[int, ...], str] = {(): ""}  # where each subshell is
    found: dict[str, None] = {}
    for command in script.commands:
        groups = command.groups
        folder = folders.setdefault(groups, folders.get(groups[:-1], ""))
        words, targets = command.own, [target.text for target in command.targets]
        operands = programs.operands(words[1:], frozenset())
        pattern = operands[:1] if programs.has_trait(command.program, programs.PATTERN) else []
        texts = [] if programs.has_trait(command.program, programs.SURE) else command.texts
        named = [word.rpartition("=")[2] for word in texts if word not in pattern]
        for path in (*named, *targets):
            if ".." in path.split("/") and posixpath.normpath(posixpath.join(folder, path)).startswith(".."):
                found[path] = None
        if command.program in ("cd", "pushd", "popd"):
            folder = folders[groups] = "" if command.program == "popd" else _in(folder, (*words[1:], "~")[0])
        written = operands if programs.has_trait(command.program, programs.WRITE) else []
        written = operands[-1:] if programs.has_trait(command.program, programs.COPY) else written
        in_place = command.program in ("perl", "sed") and any(re.match(r"-\w*i", word) for word in words[1:])
        written = operands[1:] if in_place else written
        for path in (_in(folder, path) for path in (*written, *targets)):  # also after `cd /tmp`
            if path.startswith(("/", "~", "$HOME", "${HOME}")) and not path.startswith("/dev/"):
                found[path] = None
    return tuple(found)


def _in(folder: str, path: str) -> str:
    return path if path.startswith(("~", "$", "-")) else posixpath.join(folder, path)
