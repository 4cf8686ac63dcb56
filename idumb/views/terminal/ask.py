"""Ask for a decision at the terminal. Anything but a clear choice decides nothing.

A question waits for a limited time. After a timeout, the terminal counts as unattended.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Protocol, TextIO, TypeVar

from idumb.domain import whole_numbers
from idumb.domain.action import JUDGE, JUDGEMENT, STOPPED, Answer, Decision, seconds_until
from idumb.domain.settings import ASK_TIMEOUT
from idumb.system.clock import SystemClock
from idumb.views import markup, phrases, terminal

Armed = Callable[[], contextlib.AbstractContextManager[None]]
Timeout = Callable[[], float]
T = TypeVar("T")

_MOST_EVIDENCE = 200
_TRIES = 3
_NO = "no"
_APPROVAL = "approval"
_YES = ("y", "yes")
_WORDS = {
    (STOPPED, "retry"): "Instructions for the next attempt",
    (JUDGEMENT, _NO): "What is wrong, for the next attempt",
}
"""Questions and choices that take instructions for the builder, asked on a separate line."""
_NO_BY_DEFAULT = frozenset({"consent", "approval", "irreversible", "rollback", "undo", "deinit", "skip"})
"""Kinds of questions: without an answer, the answer is no."""


class Nobody:
    """An `Asker` without a terminal."""

    interactive = False

    def ask(self, decision: Decision) -> Answer | None:
        del decision
        return None


class Terminal:
    """An `Asker` on two text streams. An empty line, the end of input or three unclear answers are no answer.

    `timeout` returns the seconds that a question waits, `shown` a text without known secrets.
    After a timeout it is no longer `interactive` and asks nothing more, so that a run with ten questions does not hold
    its working tree ten times as long.
    """

    def __init__(
        self,
        read: TextIO,
        write: TextIO,
        who: str,
        armed: Armed = contextlib.nullcontext,
        timeout: Timeout = lambda: ASK_TIMEOUT,
        shown: Callable[[str], str] = str,
    ) -> None:
        self.interactive = True
        self._shown = shown
        self._read = read
        self._write = write
        self._who = who
        self._armed = armed
        self._timeout = timeout
        self._now = SystemClock().monotonic

    def ask(self, decision: Decision) -> Answer | None:
        return self._attended(lambda: self._ask(decision))

    def _attended(self, asked: Callable[[], T | None]) -> T | None:
        if not self.interactive:
            return None
        with displays_paused():
            try:
                with self._armed():  # until there is an answer, Ctrl-C leaves
                    return asked()
            except (OSError, ValueError):
                return None  # a closed terminal decides nothing

    def _ask(self, decision: Decision) -> Answer | None:
        self._say(question(decision, terminal.columns(self._write) or 80))
        drop_typed_ahead(self._read)
        seconds, otherwise = self._timeout(), _meaning_of_empty(decision)
        left = None if decision.until is None else seconds_until(decision.until, SystemClock().now())
        if left is not None and left <= seconds:
            seconds, otherwise = left, _NO
        ends = self._now() + seconds
        for _ in range(_TRIES):
            self._say(f"Your choice ({_accepted_input(decision)}; empty: {_meaning_of_empty(decision)}): ")
            if not self._has_line(ends, seconds, otherwise):
                return None
            typed = self._read.readline().strip()
            if not typed:
                self._say(f"{_meaning_of_empty(decision).capitalize()}.\n")
                return None
            choice = chosen(decision, typed)
            if choice is not None:
                return Answer(decision.id, choice, self._who, self._guidance((decision.kind, choice), ends))
            self._say(f"That is not a choice. Type {_accepted_input(decision)}.\n")
        return None

    def _guidance(self, choice: tuple[str, str], ends: float) -> str:
        """Return instructions that go with the answer; empty after a timeout, because the answer itself counts."""
        if choice not in _WORDS:
            return ""
        self._say(f"{_WORDS[choice]} (empty: none): ")
        if not _readable(self._read, max(0.0, ends - self._now())):
            self._say("\n")
            return ""
        return self._read.readline().strip()

    def words(self, question: str, why: str) -> str | None:
        """Return a free-text line; "" for an empty one, None at the end of input and after a timeout."""
        return self._attended(lambda: self._words(question, why))

    def _words(self, question: str, why: str) -> str | None:
        lines = ["", markup.one_line(question), *([f"  {markup.one_line(why)}"] if why else [])]
        self._say("\n".join([*lines, "Your answer (empty: later): "]))
        drop_typed_ahead(self._read)
        seconds = self._timeout()
        typed = self._read.readline() if self._has_line(self._now() + seconds, seconds, "no answer") else ""
        return typed.strip() if typed else None

    def _has_line(self, ends: float, seconds: float, otherwise: str) -> bool:
        """Wait for a line or the end of input until `ends`, a monotonic time."""
        if _readable(self._read, max(0.0, ends - self._now())):
            return True
        self.interactive = False
        self._say(f"\nNo answer within {phrases.duration(seconds)}: {otherwise}.\n")
        return False

    def _say(self, text: str) -> None:
        self._write.write(self._shown(text))
        self._write.flush()


class Display(Protocol):
    """A display that redraws itself."""

    def pause(self) -> None: ...

    def resume(self) -> None: ...


displays: set[Display] = set()
"""Those of this process, which has one terminal."""


@contextlib.contextmanager
def displays_paused() -> Iterator[None]:
    """Pause all displays while a question is on the terminal."""
    paused = list(displays)
    for display in paused:
        display.pause()
    try:
        yield
    finally:
        for display in paused:
            display.resume()


def drop_typed_ahead(stream: TextIO) -> None:
    """Discard input typed before the question was shown; it cannot be its answer."""
    import termios

    try:
        termios.tcflush(stream.fileno(), termios.TCIFLUSH)
    except (OSError, ValueError, termios.error):
        return  # not a terminal


def _readable(stream: TextIO, seconds: float) -> bool:
    """Whether a line can be read within this time; a stream without a file descriptor never waits."""
    import select

    try:
        number = stream.fileno()
    except (OSError, ValueError):
        return True
    # A signal that arrives right before the call does not interrupt it, so no call waits longer than a second.
    while seconds > 1:
        if select.select([number], [], [], 1)[0]:
            return True
        seconds -= 1
    return bool(select.select([number], [], [], seconds)[0])


def at_terminal(armed: Armed, timeout: Timeout, shown: Callable[[str], str]) -> Terminal | Nobody:
    """Return the terminal of this process if standard input and error are one; otherwise `Nobody`."""
    from idumb.system import user_folders

    try:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return Nobody()
    except (AttributeError, ValueError):
        return Nobody()
    return Terminal(sys.stdin, sys.stderr, user_folders.user_name(), armed, timeout, shown=shown)


def question(decision: Decision, width: int = 80) -> str:
    """Return the question, the reason, the evidence, and the consequence of each choice."""
    why = phrases.wrapped(f"  {markup.one_line(decision.why)}", width, 0)
    lines = ["", markup.one_line(decision.what), *why, ""]
    # An approval shows everything that it covers.
    most = len(decision.evidence) if decision.kind == _APPROVAL else _MOST_EVIDENCE
    for text in decision.evidence[:most]:  # facts of a task, which are indented, and several lines do not wrap
        shown = markup.hanging(f"  {text}")
        lines += [shown] if text.startswith(" ") or "\n" in shown else phrases.wrapped(shown, width)
    hidden = len(decision.evidence) - most
    lines += [f"  and {hidden} more lines, not shown"] if hidden > 0 else []
    lines += [""] if decision.evidence else []
    longest = max((len(c.id) for c in decision.choices), default=0)
    for number, c in enumerate(decision.choices, 1):
        words = f"  [{number}] {c.id:<{longest}}  {markup.one_line(c.text)}: {markup.one_line(c.consequence)}"
        lines += phrases.wrapped(words, width, longest + 6)
    return phrases.text_of(lines)


def _accepted_input(decision: Decision) -> str:
    """Return the accepted input, each choice with its number: `1, run or yes; 2 or no`."""
    meant = _meant_by_yes(decision)
    inputs = [
        f"{number}, {c.id} or yes" if c.id == meant and c.id != "yes" else f"{number} or {c.id}"
        for number, c in enumerate(decision.choices, 1)
    ]
    return "; ".join(inputs)


def _meaning_of_empty(decision: Decision) -> str:
    return _NO if decision.kind in _NO_BY_DEFAULT else "no answer"


def _meant_by_yes(decision: Decision) -> str | None:
    """Return the choice other than `no` if there are two. Choices offered by a plan need their own names."""
    no = decision.choice(_NO)
    if len(decision.choices) != 2 or no is None or no.move == JUDGE:
        return None
    return next(choice.id for choice in decision.choices if choice is not no)


def chosen(decision: Decision, typed: str) -> str | None:
    """Return the choice typed as number, id, unambiguous prefix, or `y` and `yes` if that is clear."""
    ids = [c.id for c in decision.choices]
    if typed.isascii() and typed.isdigit():
        number = whole_numbers.parse(typed)
        return ids[number - 1] if number is not None and 0 < number <= len(ids) else None
    folded = typed.casefold()
    exact = [i for i in ids if i.casefold() == folded]
    fitting = exact or [i for i in ids if i.casefold().startswith(folded)]
    if not fitting and folded in _YES:
        return _meant_by_yes(decision)
    return fitting[0] if len(fitting) == 1 else None
