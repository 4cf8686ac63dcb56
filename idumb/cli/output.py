"""Answers: one JSON object or words for people, on standard output; what went wrong, on standard error."""

from __future__ import annotations

import os
import sys

from idumb.domain import errors

TYPE_CHECKING = False  # `typing` is dear, and `idumb status` imports this module; type checkers know the name
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from idumb.app.core.result import Result
    from idumb.system.redaction import Redactor


_noted: list[str] = []  # what was said on the way, for the one object that is printed at the end
_redactors: list[Callable[[], Redactor]] = []  # of the repository that the command works in, once it is known
READER_GONE = 128 + 13  # as a shell calls a program that SIGPIPE ended


def redact_by(*redactor: Callable[[], Redactor]) -> None:
    """Whatever is printed from here on is without the secrets that this one knows; it is made when it is needed."""
    _redactors[:] = redactor


def redacted(text: str) -> str:
    return _redactors[0]().text(text) if _redactors else text


def note(text: str) -> None:
    """Keep a line for the warnings of the answer."""
    _noted.append(text)


def _with_notes(warnings: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Whatever was noted, once, then the warnings."""
    found = tuple(dict.fromkeys((*_noted, *warnings)))
    _noted.clear()
    return found


def finish(command: str, result: Result, *, as_json: bool, quiet: bool = False, shown_as: str | None = None) -> int:
    """Print a use case's result; its exit code. `quiet` leaves the words out, where standard output is spoken for.

    `shown_as` names other words than the command's.
    """
    warnings = _with_notes(result.warnings)
    if as_json:
        error: dict[str, Any] | None = None
        if result.failure is not None:
            code, message, hint = result.failure
            details = _failed(result.exit_code, message, result.details)
            error = {"code": code, "message": message, "hint": hint, "details": details}
        print_object(command, result.data, error=error, warnings=warnings)
        return result.exit_code
    if not quiet:
        from idumb.views import answer

        write(sys.stdout, answer.render(shown_as or command, result.data))
    for warning in warnings:
        _tell(f"warning: {escaped(warning)}\n")
    if result.failure is not None:
        _complain(*result.failure, details=result.details)
    return result.exit_code


def show(command: str, data: Mapping[str, Any], *, as_json: bool) -> None:
    """Print the data of a reading command that cannot fail any more."""
    if as_json:
        print_object(command, data)
    else:
        from idumb.views import answer

        write(sys.stdout, answer.render(command, data))


def fail(command: str, problem: errors.IdumbError, *, as_json: bool) -> int:
    """Print an error; its exit code."""
    findings = [_plain(f) for f in getattr(problem, "findings", ())]
    details = {**problem.details, **({"findings": findings} if findings else {})}
    if as_json:
        details = _failed(problem.exit_code, problem.message, details)
        error = {"code": problem.code, "message": problem.message, "hint": problem.hint, "details": details}
        print_object(command, {}, error=error, warnings=_with_notes())
        return problem.exit_code
    for warning in _with_notes():
        _tell(f"warning: {escaped(warning)}\n")
    _complain(problem.code, problem.message, problem.hint, findings, details)
    for kind in ("tasks", "paths"):
        if details.get(kind):
            _tell(f"  {kind}: {escaped(', '.join(list(details[kind])[:20]))}\n")
    return problem.exit_code


_FAILURES = frozenset(
    {errors.EXIT_FAILED, errors.EXIT_INTERNAL, errors.EXIT_HUNG_UP, errors.EXIT_INTERRUPTED, errors.EXIT_TERMINATED}
)


def _failed(exit_code: int, message: str, details: Mapping[str, Any]) -> dict[str, Any]:
    """The details with what every failure tells; a refusal did nothing that could have failed."""
    if exit_code not in _FAILURES:
        return dict(details)
    from idumb.domain.refusals import table

    return table.failed(message, details, interrupted=exit_code > errors.EXIT_INTERNAL)


def print_object(
    command: str,
    data: Mapping[str, Any],
    *,
    error: Mapping[str, Any] | None = None,
    warnings: tuple[str, ...] = (),
) -> None:
    """Exactly one object on standard output, ASCII only, so that no terminal can be led astray by it."""
    from idumb.views import answer

    _put(sys.stdout, as_line(answer.whole(command, data=data, warnings=warnings, error=error)))


def as_line(value: Mapping[str, Any]) -> str:
    """A JSON object on one line, without known secrets."""
    import json

    text = json.dumps(value)
    if _redactors and (redactor := _redactors[0]()).holds(text):
        text = json.dumps(redactor.value(value))
    return text + "\n"


def escaped(text: str) -> str:
    from idumb.system import escaping

    return escaping.show(text)


def write(stream: Any, text: str) -> None:
    """Write words for people, without known secrets. A stream that was closed before we started is None."""
    _put(stream, redacted(text) if text else text)


def _put(stream: Any, text: str) -> None:
    """Write text that may hold bytes of any file name."""
    if stream is None:
        return
    try:
        stream.write(text)
    except UnicodeEncodeError:
        stream.write(text.encode("utf-8", "backslashreplace").decode(stream.encoding or "ascii", "replace"))
    stream.flush()


def _tell(text: str) -> None:
    """Words for people. Where standard error is gone, with its terminal for one, nobody is there to be told."""
    try:
        write(sys.stderr, text)
    except (OSError, ValueError):
        _discard(2)


def unwritten(problem: OSError) -> int:
    """Standard output cannot be written to, so standard error says why, unless the reader has simply gone."""
    _discard(sys.stdout.fileno())
    if isinstance(problem, BrokenPipeError):
        return READER_GONE
    words = f"The answer could not be written: {problem.strerror or problem}"
    _complain("system.refused", words, "Mend that and say it again")
    return errors.EXIT_REFUSED


def flushed(code: int) -> int:
    """The exit code after the last flush of both streams.

    The interpreter would flush them too, but it prints an exception for a reader that is gone, and exits with 120.
    """
    try:
        write(sys.stdout, "")
    except BrokenPipeError:
        _discard(sys.stdout.fileno())
    except OSError as problem:
        code = unwritten(problem)
    _tell("")
    return code


def _discard(descriptor: int) -> None:
    """Let what is left in the buffer go nowhere: the interpreter would fail over it once more when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


def of_defect(defect: BaseException) -> errors.IdumbError:
    """A defect of idumb's own; what is needed to report it is written to the state directory."""
    import traceback

    text = redacted("".join(traceback.format_exception(defect)))
    place = _report(text)
    return errors.IdumbError(
        "internal",
        f"idumb has a defect: {type(defect).__name__}: {defect}",
        hint=f"The details are in {place}; nothing is lost, idumb status shows where you are" if place else None,
        details={"report": place},
    )


def _report(text: str) -> str | None:
    from idumb.system import clock
    from idumb.system.files import atomic_write, state_dir

    try:
        folder = os.path.join(state_dir.path(), "reports")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        path = os.path.join(folder, f"defect-{clock.nanoseconds()}.txt")
        atomic_write.write(path, text.encode("utf-8", "backslashreplace"), durable=False, mode=0o600)
    except OSError:
        return None
    return path


def _complain(
    code: str,
    message: str,
    hint: str | None,
    findings: Sequence[Mapping[str, Any]] = (),
    details: Mapping[str, Any] | None = None,
) -> None:
    from idumb.views import answer

    _tell(answer.failure(code, message, hint, findings, details))


def _plain(finding: Any) -> dict[str, Any]:
    found: dict[str, Any] = finding.as_dict()
    return found
