"""The programs and branches of a command string for `/bin/sh -c`, as far as its text shows; nothing is expanded or run.

Quoted text, comments and here-documents are data. A command substitution outside single quotes is a nested script, and
so is the text that `sh -c` receives.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from idumb import lazy_pattern
from idumb.lazy_dataclass import dataclass

MOST_NESTED = 8

# fmt: off
BUILTINS = frozenset({
    ".", ":", "[", "[[", "alias", "bg", "break", "builtin", "cd", "command", "continue", "declare", "echo", "eval",
    "exec", "exit", "export", "false", "fg", "getopts", "hash", "jobs", "kill", "let", "local", "popd", "printf",
    "pushd", "pwd", "read", "readonly", "return", "set", "shift", "source", "test", "times", "trap", "true", "type",
    "typeset", "ulimit", "umask", "unalias", "unset", "wait",
})
_OPENING = frozenset({"if", "then", "elif", "else", "while", "until", "do", "!", "{", "time"})
_CLOSING = frozenset({"fi", "done", "esac", "}"})
# fmt: on
_RESERVED = _OPENING | _CLOSING | {"case", "for", "select"}
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})
_STARTERS = frozenset({"env", "exec", "command", "nohup"})
"""Programs whose first argument, after options, is a program too."""
_OPERATOR = lazy_pattern.compile(r";;|&&|\|\||\|&|<<<|<<-?|>>|>\||[<>]&|<>|[;&|()<>\n]")
_ASSIGNED = lazy_pattern.compile(r"[A-Za-z_]\w*\+?=")
_PLAIN = lazy_pattern.compile(r"[^'\"\\`$ \t\r#;&|()<>\n*?\[]+")
"""Characters that mean themselves, wherever they are in a word."""
_WORD = lazy_pattern.compile(rf"""(?:{_PLAIN.pattern}+|'[^']*+'|"[^"\\`$]*+")++""")
_WORDS = lazy_pattern.compile(rf"(?: *+{_WORD.pattern})*+ *+")
"""Words without expansions, and no operator."""
_QUOTED = lazy_pattern.compile(r"'[^']*'|\"[^\"]*\"")
_VARIABLE = lazy_pattern.compile(r"\$\{?([A-Za-z_]\w*)")


@dataclass(frozen=True, slots=True)
class Word:
    """`text` is without quotes. `literal`: no expansion changes it. `quoted`: any part of it is quoted."""

    text: str
    literal: bool = True
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Script:
    """`commands` are the words of each simple command, in order; `branches` the words `if`, `case` and `||`.

    `variables` are those that the shell expands, `functions` those that the script defines. `unclosed` is a quote or
    `$(` without an end, which every shell rejects.
    """

    commands: tuple[tuple[Word, ...], ...] = ()
    branches: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    unclosed: str = ""

    @property
    def programs(self) -> tuple[str, ...]:
        """The programs that the text names, once each, without shell builtins and its own functions."""
        names = dict.fromkeys(name for command in self.commands for name in programs_of(command))
        return tuple(name for name in names if name not in BUILTINS and name not in self.functions)


def tokens(command: str) -> tuple[Word | str, ...]:
    """Return the words and operators of a command string, without comments and here-documents."""
    scanner = _Scanner(command)
    scanner.scan()
    return tuple(scanner.tokens)


@functools.lru_cache(maxsize=4096)  # one rule after the other reads every check of a plan
def simple_command(command: str) -> tuple[Word, ...]:
    """Return the words of a command string that is one simple command, without expansions and scripts in it.

    Return () for any other.
    """
    if _WORDS.fullmatch(command) is None:
        return ()
    if "'" in command or '"' in command:
        words = tuple(map(_unquoted, _WORD.findall(command)))
    else:
        words = tuple(map(Word, filter(None, command.split(" "))))
    if not words or (words[0].text in _RESERVED and not words[0].quoted) or inner_script(words) is not None:
        return ()
    return words


def _unquoted(word: str) -> Word:
    text, quoted = _QUOTED.subn(lambda match: match[0][1:-1], word)
    return Word(text, quoted=quoted > 0)


@functools.lru_cache(maxsize=512)
def read(command: str, depth: int = 0) -> Script:
    """Parse a command string with everything nested in it. It accepts text that a shell would reject."""
    simple = simple_command(command)
    if simple:  # as most checks are: a plan can have thousands, and several rules read each of them
        return Script((simple,))
    scanner = _Scanner(command)
    scanner.scan()
    reader = _Reader()
    for token in scanner.tokens:
        reader.take(token)
    reader.end()
    nested = [*scanner.nested, *(text for words in reader.commands if (text := inner_script(words)) is not None)]
    below = [read(text, depth + 1) for text in nested] if depth < MOST_NESTED else []
    return Script(
        (*map(tuple, reader.commands), *(part for script in below for part in script.commands)),
        (*reader.branches, *(part for script in below for part in script.branches)),
        tuple(dict.fromkeys((*scanner.variables, *(part for script in below for part in script.variables)))),
        (*reader.functions, *(part for script in below for part in script.functions)),
        next((mark for mark in (scanner.unclosed, *(script.unclosed for script in below)) if mark), ""),
    )


def of_arguments(argv: Sequence[str]) -> Script:
    """Parse an argument list, which is a script only if its program is a shell."""
    words = tuple(Word(text) for text in argv)
    inner = inner_script(words)
    below = read(inner, 1) if inner is not None else Script()
    return Script((words, *below.commands), below.branches, below.variables, below.functions, below.unclosed)


def inner_script(words: Sequence[Word]) -> str | None:
    """Return the script in the arguments of a shell, as in `sh -c 'script'` and `bash -euc 'script'`."""
    names = [word.text for word in words]
    at = next((n for n, name in enumerate(names) if name.rpartition("/")[2] in _SHELLS), None)
    if at is None:
        return None
    for n in range(at + 1, len(names) - 1):
        if re.fullmatch(r"-[a-z]*c", names[n]):
            return names[n + 1]
        if not names[n].startswith("-"):
            return None
    return None


def programs_of(words: Sequence[Word]) -> tuple[str, ...]:
    """Return the program of a simple command, and the program that it starts, as in `env A=b make`."""
    programs: list[str] = []
    for word in words:
        if _ASSIGNED.match(word.text) or (programs and word.text == "-i"):
            continue
        if not word.literal or not word.text or (programs and word.text.startswith("-")):
            break
        programs.append(word.text)
        if word.text.rpartition("/")[2] not in _STARTERS:
            break
    return tuple(programs)


class _Scanner:
    """Splits a command string into words and operators, in one pass."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[Word | str] = []
        self.nested: list[str] = []
        self.variables: list[str] = []
        self.unclosed = ""
        self._at = 0
        self._parts: list[str] = []
        self._inside = self._literal = False
        self._quoted = False
        self._documents: list[tuple[str, bool]] = []

    def scan(self) -> None:
        text, plain = self.text, _PLAIN.match
        while self._at < len(text):
            same = plain(text, self._at)
            if same is not None:
                self._add(same[0])
                self._at = same.end()
                continue
            char = text[self._at]
            if char in "'\"\\`$":
                self._quotation(char)
            elif char in " \t\r":
                self._close()
                self._at += 1
            elif char == "#" and not self._inside:
                self._at = self._find("\n")
            elif char in ";&|()<>\n":
                self._operator()
            else:
                self._add(char, expands=char in "*?[")
                self._at += 1
        self._close()

    def _find(self, mark: str, start: int | None = None) -> int:
        index = self.text.find(mark, self._at if start is None else start)
        return len(self.text) if index < 0 else index

    def _end(self, mark: str, start: int) -> int:
        """Return the index of the mark that closes a quotation; note it if there is none."""
        index = self._find(mark, start)
        # A backslash hides a mark in `$'…'`, which only some shells know, and a backquote inside another.
        if index >= len(self.text) and "$'" not in self.text and "\\`" not in self.text:
            self.unclosed = self.unclosed or mark
        return index

    def _add(self, text: str, *, expands: bool = False, quoted: bool = False) -> None:
        if not self._inside:
            self._inside, self._literal, self._quoted = True, True, False
        self._literal = self._literal and not expands
        self._quoted = self._quoted or quoted
        self._parts.append(text)

    def _close(self) -> None:
        if self._inside:
            word = Word("".join(self._parts), self._literal, self._quoted)
            self.tokens.append(word)
            self._parts, self._inside = [], False

    def _quotation(self, char: str) -> None:
        if char == "\\":
            escaped = self.text[self._at + 1 : self._at + 2]
            if escaped != "\n":
                self._add(escaped, quoted=True)
            self._at += 2
        elif char == "'":
            end = self._end("'", self._at + 1)
            self._add(self.text[self._at + 1 : end], quoted=True)
            self._at = end + 1
        elif char == '"':
            self._at += 1
            self._add("", quoted=True)
            self._double()
        else:
            self._expansion(char)

    def _double(self) -> None:
        """Read text in double quotes to its end; only expansions matter in it."""
        while self._at < len(self.text) and (char := self.text[self._at]) != '"':
            if char == "\\":
                self._add(self.text[self._at + 1 : self._at + 2], quoted=True)
                self._at += 2
            elif char in "$`":
                self._expansion(char)
            else:
                self._add(char, quoted=True)
                self._at += 1
        self._end('"', self._at)
        self._at += 1

    def _expansion(self, char: str) -> None:
        text, start = self.text, self._at
        if char == "`":
            end = self._end("`", start + 1)
            self.nested.append(text[start + 1 : end])
            self._at = end + 1
        elif text.startswith("$((", start):
            end = _closing(text, start + 1)
            self.variables += _names(text[start:end])
            self._at = end
        elif text.startswith("$(", start):
            end = _closing(text, start + 1)
            if text[end - 1] != ")":
                self.unclosed = self.unclosed or "$("
            self.nested.append(text[start + 2 : end - 1])
            self._at = end
        elif (match := _VARIABLE.match(text, start)) is not None:
            self.variables.append(match[1])
            self._at = self._find("}", start) + 1 if text.startswith("${", start) else match.end()
        else:
            self._at += 1
        self._add(text[start : self._at], expands=True)

    def _operator(self) -> None:
        match = _OPERATOR.match(self.text, self._at)
        operator = self.text[self._at] if match is None else match[0]
        if self._inside and operator[0] in "<>" and "".join(self._parts).isdigit():
            self._parts, self._inside = [], False  # a file descriptor
        self._close()
        self._at += len(operator)
        if operator in ("<<", "<<-"):
            self._document(operator)
            return
        self.tokens.append(operator)
        if operator == "\n":
            self._skip_documents()

    def _document(self, operator: str) -> None:
        match = re.compile(r"[ \t]*(['\"\\]?)([^\s'\"|&;()<>]+)['\"]?").match(self.text, self._at)
        if match is not None:
            self._documents.append((match[2], operator == "<<-"))
            self._at = match.end()

    def _skip_documents(self) -> None:
        for mark, indented in self._documents:
            while self._at < len(self.text):
                end = self._find("\n")
                line, self._at = self.text[self._at : end], end + 1
                if (line.lstrip("\t") if indented else line) == mark:
                    break
        self._documents = []


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


def _names(arithmetic: str) -> list[str]:
    return re.findall(r"[A-Za-z_]\w*", arithmetic)


class _Reader:
    """Groups words and operators into simple commands."""

    def __init__(self) -> None:
        self.commands: list[tuple[Word, ...]] = []
        self.branches: list[str] = []
        self.functions: list[str] = []
        self._words: list[Word] = []
        self._skips = ""  # the construct being skipped: a redirection's target, `for x in …`, `case x`, a pattern
        self._cases = 0

    def take(self, token: Word | str) -> None:
        if isinstance(token, Word):
            self._word(token)
        else:
            self._operator(token)

    def end(self) -> None:
        if self._words:
            self.commands.append(tuple(self._words))
        self._words = []

    def _word(self, word: Word) -> None:
        plain = None if word.quoted or self._words else word.text
        if self._skips == "target":
            self._skips = ""
        elif self._skips == "case":
            self._skips = "pattern" if word.text == "in" else "case"
        elif self._skips == "pattern":
            if plain == "esac":
                self._skips, self._cases = "", self._cases - 1
        elif self._skips == "for":
            pass
        elif plain in ("for", "select"):
            self._skips = "for"
        elif plain == "case":
            self.branches.append("case")
            self._skips, self._cases = "case", self._cases + 1
        elif plain in _OPENING:
            self.branches += [plain] if plain == "if" else []
        elif plain in _CLOSING:
            self._cases -= plain == "esac"
        else:
            self._words.append(word)

    def _operator(self, operator: str) -> None:
        if self._skips == "pattern":
            self._skips = "" if operator == ")" else "pattern"
            return
        if operator[0] in "<>" or operator == ">|":
            self._skips = "target"
            return
        if operator == "(" and len(self._words) == 1 and not self._words[0].quoted:
            self.functions.append(self._words.pop().text)
        self.branches += ["||"] if operator == "||" else []
        self.end()
        self._skips = "pattern" if operator == ";;" and self._cases > 0 else ""
