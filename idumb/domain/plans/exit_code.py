"""Which programs of a check can fail without making it fail, because the shell uses another exit code.

A parser for the lists, pipes, groups and loops of `sh`. It gives no answer for text that decides by itself, such as
`case`, functions, `trap` and `$?`. Only programs whose failure matters are reported: test programs and builds always,
others only if nothing else in the check can fail.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Sequence

from idumb.domain.plans import exit_status, shell
from idumb.domain.plans.exit_status import BACKGROUND, LOOP, PIPE, SEQUENCE, Status, Unreadable
from idumb.domain.plans.shell import Word
from idumb.domain.plans.simple_command import SimpleCommand, without_prefixes
from idumb.lazy_dataclass import dataclass

# fmt: off
_OPAQUE = frozenset({"break", "case", "continue", "eval", "function", "return", "select", "trap"})
_ENDS = frozenset({"}", ")", "fi", "done", "then", "elif", "else", "do", "esac"})
# fmt: on


@dataclass(frozen=True, slots=True)
class Hidden:
    """A program whose failure the check hides. `way` says how, `by` is the command whose exit code counts instead.

    `pipefail`: the check sets this option, which the shells that `/bin/sh` may be do not all have.
    """

    command: str
    way: str
    by: str
    pipefail: bool = False


@functools.lru_cache(maxsize=256)
def hidden_failures(command: str) -> tuple[Hidden, ...]:
    """Return the programs whose failure a check for `/bin/sh -c` hides; none if that cannot be read from its text."""
    if shell.simple_command(command):
        return ()
    try:
        status = _read(command, bash=False, errexit=False, pipefail=False)
    except (Unreadable, RecursionError):
        return ()
    others = [simple for simple in (*status.decisive, *status.fatal) if simple.decides]
    awaited = [simple for simple, way, _ in status.hidden if way != BACKGROUND and simple.decides]
    pipefail = "pipefail" in command
    return tuple(
        dict.fromkeys(
            Hidden(simple.text, way, by, way == PIPE and pipefail)
            for simple, way, by in status.hidden
            if _matters(simple, way)
            or (simple.decides and not others and not (way == BACKGROUND and awaited))  # a server, for the others
        )
    )


def _matters(simple: SimpleCommand, way: str) -> bool:
    """Whether the failure of a program matters although something else in the check can fail."""
    if simple.is_tool:
        return True
    return way in (SEQUENCE, LOOP) and simple.compares


def _read(text: str, *, bash: bool, errexit: bool, pipefail: bool) -> Status:
    parser = _Parser(shell.tokens(text), bash=bash, errexit=errexit, pipefail=pipefail)
    status = parser.sequence()
    if parser.at < len(parser.tokens):
        raise Unreadable
    return status


class _Parser:
    """A recursive parser that returns the status of each part instead of a tree."""

    def __init__(self, tokens: Sequence[Word | str], *, bash: bool, errexit: bool, pipefail: bool) -> None:
        self.tokens = tokens
        self.at = 0
        self._bash = bash
        self._errexit = errexit
        self._pipefail = pipefail
        self._conditions = 0

    def _peek(self) -> Word | str | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def _reserved(self) -> str:
        """Return the next token if it is an operator or an unquoted word that can be a reserved one; else ""."""
        token = self._peek()
        if isinstance(token, Word):
            return "" if token.quoted or not token.literal else token.text
        return token or ""

    def _expect(self, text: str) -> None:
        if self._reserved() != text:
            raise Unreadable
        self.at += 1

    def _skip(self, *operators: str) -> None:
        while self._peek() in operators:
            self.at += 1

    def sequence(self) -> Status:
        """Read commands up to the end or a word that closes a group."""
        status, first = Status(constant=True), True
        self._skip("\n", ";")
        while self._peek() is not None and self._reserved() not in _ENDS and self._peek() not in (")", ";;"):
            part = self._and_or()
            if self._peek() == "&":
                part = exit_status.in_background(part)
            if self._errexit and not self._conditions:
                part = dataclasses.replace(part, fatal=(*part.fatal, *part.decisive))
            status = part if first else exit_status.in_sequence(status, part)
            first = False
            if self._peek() not in (";", "&", "\n"):
                break
            self.at += 1
            self._skip("\n", ";")
        return status

    def _and_or(self) -> Status:
        start = self.at
        left = self._pipeline()
        while self._peek() in ("&&", "||"):
            operator = self._peek()
            self.at += 1
            self._skip("\n")
            text_at = self.at
            right = self._pipeline()
            if operator == "&&":
                left = exit_status.both(left, right)
            else:
                left = exit_status.either(left, right, self._text(text_at, self.at))
        if self.at == start:
            raise Unreadable
        return left

    def _text(self, start: int, end: int) -> str:
        return " ".join(t.text if isinstance(t, Word) else t for t in self.tokens[start:end]).strip()

    def _pipeline(self) -> Status:
        inverted = False
        while self._reserved() in ("!", "time"):
            inverted = inverted != (self._reserved() == "!")
            self.at += 1
        parts = [self._command()]
        while self._peek() in ("|", "|&"):
            self.at += 1
            self._skip("\n")
            parts.append(self._command())
        status = parts[-1] if len(parts) == 1 else exit_status.piped(parts, pipefail=self._pipefail and self._bash)
        if inverted and status.constant is not None:
            status = dataclasses.replace(status, constant=not status.constant)
        return status

    def _command(self) -> Status:
        word = self._reserved()
        if word in _OPAQUE:
            raise Unreadable
        if word in ("(", "{"):
            status = self._group(word)
        elif word == "if":
            status = self._if()
        elif word in ("while", "until", "for"):
            status = self._loop(word)
        else:
            return self._simple()
        self._redirections()
        return status

    def _group(self, opening: str) -> Status:
        self.at += 1
        options = self._errexit, self._pipefail
        status = self.sequence()
        self._expect(")" if opening == "(" else "}")
        if opening == "(":
            self._errexit, self._pipefail = options
            # `exit` ends only the subshell
            status = dataclasses.replace(status, decisive=(*status.decisive, *status.fatal), fatal=(), exits=False)
        return status

    def _condition(self) -> Status:
        self._conditions += 1
        status = self.sequence()
        self._conditions -= 1
        return status

    def _if(self) -> Status:
        tests: list[Status] = []
        branches: list[Status] = []
        otherwise: Status | None = None
        while self._reserved() in ("if", "elif"):
            self.at += 1
            tests.append(self._condition())
            self._expect("then")
            branches.append(self.sequence())
        if self._reserved() == "else":
            self.at += 1
            otherwise = self.sequence()
        self._expect("fi")
        return exit_status.branched(tests, branches, otherwise)

    def _loop(self, word: str) -> Status:
        self.at += 1
        if word == "for":
            while self._peek() is not None and self._reserved() != "do":
                self.at += 1
        else:
            self._condition()
        self._expect("do")
        body = self.sequence()
        self._expect("done")
        if word != "for":
            return dataclasses.replace(body, constant=None)
        fatal = set(body.fatal)
        lost = tuple((simple, LOOP, body.last) for simple in body.decisive if simple not in fatal)
        return dataclasses.replace(body, hidden=(*body.hidden, *lost))

    def _redirections(self) -> None:
        while isinstance(token := self._peek(), str) and (token[0] in "<>" or token == ">|"):
            self.at += 1
            if not isinstance(self._peek(), Word):
                raise Unreadable  # process substitution
            self.at += 1

    def _simple(self) -> Status:
        words: list[Word] = []
        start = self.at
        while True:
            self._redirections()
            token = self._peek()
            if not isinstance(token, Word):
                break
            words.append(token)
            self.at += 1
        if self.at == start:
            raise Unreadable
        if self._peek() == "(":
            raise Unreadable  # a function
        return self._status(words)

    def _status(self, words: Sequence[Word]) -> Status:
        commands = [word.text for word in words]
        simple = SimpleCommand(tuple(without_prefixes(commands)))
        if simple.program not in ("echo", "printf") and any("$?" in c or "PIPESTATUS" in c for c in commands):
            raise Unreadable
        if simple.program == "wait" and len(simple.words) > 1:
            raise Unreadable
        if simple.program == "set":
            self._set(simple.words[1:])
        script = shell.inner_script(words)
        if script is not None and not simple.is_filter:
            options = " ".join(commands[: commands.index(script)])
            bash = simple.program in ("bash", "zsh", "ksh")
            flags = [word for word in simple.words if word[:1] == "-" and word[1:2] != "-"]
            errexit = any("e" in flag for flag in flags)
            return _read(script, bash=bash, errexit=errexit, pipefail="pipefail" in options)
        if simple.program == "exit":
            return _exit(simple)
        if simple.program == "false":
            return Status(constant=False, last="false")
        if simple.is_sure:
            return Status(constant=True, last=simple.text)
        return Status((simple,), last=simple.text)

    def _set(self, options: Sequence[str]) -> None:
        for option, value in itertools.pairwise((*options, "")):
            on = option.startswith("-")
            if option[:1] in "+-" and "e" in option[1:]:
                self._errexit = on
            if option[:1] in "+-" and option.endswith("o"):
                self._pipefail = on if value == "pipefail" else self._pipefail
                self._errexit = on if value == "errexit" else self._errexit


def _exit(simple: SimpleCommand) -> Status:
    code = simple.words[1] if len(simple.words) > 1 else ""
    if not code.isdigit():
        raise Unreadable  # the exit code of an earlier command
    return Status(constant=code == "0", exits=True, last=simple.text)
