"""Writes answers to standard output, as one JSON object or as text, and errors to standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from idumb.app.core.services import Result
from idumb.domain import errors
from idumb.domain.action import Action, plain
from idumb.system import escaping

if TYPE_CHECKING:
    from idumb.system.redaction import Redactor

_notes: list[str] = []  # warnings for the answer that is printed at the end
_redactors: list[Callable[[], Redactor]] = []  # of the command's repository, once it is known
_objects: list[str] = []  # the command whose object was printed
READER_GONE = 128 + 13  # the exit code that a shell reports for SIGPIPE


def redact_by(*redactor: Callable[[], Redactor]) -> None:
    """Redact all further output. The redactor is created when it is first needed."""
    _redactors[:] = redactor


def redacted(text: str) -> str:
    return _redactors[0]().redact(text) if _redactors else text


def note(text: str) -> None:
    """Add a line to the warnings of the answer."""
    _notes.append(text)


def finish(command: str, result: Result, view: str, *, as_json: bool, quiet: bool = False) -> int:
    """Print the result of a use case and return its exit code. `view` is as in `answer.render`.

    `quiet` omits the text, for commands whose standard output carries events.
    """
    from idumb.views import answer

    warnings, details = tuple(dict.fromkeys((*_notes, *result.warnings))), result.details
    _notes.clear()
    if as_json:
        error = _error(result)
        # In ASCII, so that it cannot contain terminal control codes.
        _put(sys.stdout, as_line(answer.json_object(command, data=result.data, warnings=warnings, error=error)))
        _objects.append(command)
        return result.exit_code
    if not quiet:
        ends = result.failure is not None  # the error below has the next commands
        write(sys.stdout, answer.render(view, {**result.data, "next": []} if ends else result.data))
    for warning in warnings:
        _write_error(f"warning: {shown(warning)}\n")
    if result.failure is not None:
        if result.data.get("findings"):  # they are the evidence
            details = {name: value for name, value in details.items() if name != "evidence"}
        _write_failure(*result.failure, details, () if quiet else result.data.get("next", ()))
    return result.exit_code


def fail(command: str, problem: errors.IdumbError, *, as_json: bool) -> int:
    """Print an error and return its exit code."""
    findings = [finding.as_dict() for finding in getattr(problem, "findings", ())]
    details = {**problem.details, **({"findings": findings} if findings else {})}
    failure = (problem.code, problem.message, problem.step)
    return finish(command, Result({}, problem.exit_code, (), failure, details), "", as_json=as_json, quiet=True)


_FAILURES = frozenset(
    {errors.EXIT_FAILED, errors.EXIT_INTERNAL, errors.EXIT_HUNG_UP, errors.EXIT_INTERRUPTED, errors.EXIT_TERMINATED}
)


def _error(result: Result) -> dict[str, Any] | None:
    """Return the error of an answer. A refusal started nothing, so it has none of the fields of a failure."""
    if result.failure is None:
        return None
    (code, message, hint), details = result.failure, dict(result.details)
    if result.exit_code in _FAILURES:
        from idumb.domain import refusals

        details = refusals.failure_details(message, details, interrupted=result.exit_code > errors.EXIT_INTERNAL)
    return {"code": code, "message": message, "hint": hint, "details": details}


def command_in(argv: Sequence[str]) -> str:
    """Return the command of a command line as it was typed, also if there is none of that name."""
    words = iter(argv)
    for word in words:
        if word == "--set":
            next(words, None)
        elif not word.startswith("-"):
            return word
    return "idumb"


def has_printed_object() -> bool:
    return bool(_objects)


def as_line(value: Mapping[str, Any]) -> str:
    """Return a JSON object on one line, without known secrets."""
    text = json.dumps(value)
    if _redactors and (redactor := _redactors[0]()).holds(text):
        text = json.dumps(redactor.value(value))
    return text + "\n"


def shown(text: str) -> str:
    """Return text for a terminal, without known secrets and with harmful characters as escapes."""
    return escaping.show(redacted(text))


def write(stream: Any, text: str) -> None:
    """Write text without known secrets. A stream that was closed before the process started is None."""
    _put(stream, redacted(text) if text else text)


def _put(stream: Any, text: str) -> None:
    """Write text that may contain undecodable file names."""
    if stream is None:
        return
    try:
        stream.write(text)
    except UnicodeEncodeError:
        encoding = stream.encoding or "ascii"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def _write_error(text: str) -> None:
    """Write to standard error, if it is still open."""
    try:
        write(sys.stderr, text)
    except (OSError, ValueError):
        _discard(2)


def report_unwritable(problem: OSError) -> int:
    """Report that standard output cannot be written, unless its reader just went away; return the exit code."""
    _discard(sys.stdout.fileno())
    if isinstance(problem, BrokenPipeError):
        return READER_GONE
    message = f"Cannot write the answer: {problem.strerror or problem}"
    _write_failure("system.refused", message, "Fix this and run the command again")
    return errors.EXIT_REFUSED


def flush(code: int) -> int:
    """Flush both streams and return the exit code.

    Without this, the interpreter flushes them at exit: if the reader is gone it prints an exception and exits with 120.
    """
    try:
        write(sys.stdout, "")
    except BrokenPipeError:
        _discard(sys.stdout.fileno())
    except OSError as problem:
        code = report_unwritable(problem)
    _write_error("")
    return code


def _discard(descriptor: int) -> None:
    """Discard what is left in the buffer, or the interpreter fails to flush it again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


def defect(problem: BaseException) -> errors.IdumbError:
    """Return the error for a defect of idumb; its traceback is written to the state directory."""
    import traceback

    text = redacted("".join(traceback.format_exception(problem)))
    path = _report(text)
    return errors.IdumbError(
        "internal",
        f"idumb has a defect: {type(problem).__name__}: {problem}",
        hint=f"Nothing is lost. Report the defect with {path}; idumb status shows where you are" if path else None,
        details={"report": path},
    )


def _report(text: str) -> str | None:
    from idumb.system import atomic_write, clock, user_folders

    try:
        folder = os.path.join(user_folders.path(), "reports")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        path = os.path.join(folder, f"defect-{clock.nanoseconds()}.txt")
        atomic_write.write(path, text.encode("utf-8", "backslashreplace"), durable=False, mode=0o600)
    except OSError:
        return None
    return path


def _write_failure(
    code: str,
    message: str,
    hint: Action | str | None,
    details: Mapping[str, Any] | None = None,
    following: Sequence[Action | str] = (),
) -> None:
    from idumb.views import answer, terminal

    if _redactors:  # before the lines are wrapped
        message, details = _redactors[0]().value(plain([message, details or {}]))
    findings = (details or {}).get("findings", ())
    _write_error(answer.failure(code, message, hint, findings, details, following, width=terminal.columns(sys.stderr)))
