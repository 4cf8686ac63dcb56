"""Removes secrets from output before anything is stored.

Known values (of variables passed to a program) are recognised in the spellings that programs use, unknown tokens by
their issuers' prefixes. Randomness alone is no criterion: it would match every object id. A secret is replaced by
`[redacted:kind:8 hex]`; equal secrets of one repository get equal marks.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

MARK = re.compile(r"\[redacted:[a-z0-9-]+:[0-9a-f]{8}\]")
"""The mark in place of a secret."""
_ID = re.compile(r"(?:[0-9a-f]{12}|[0-9a-f]{16}|[0-9a-f]{40}|[0-9a-f]{64})")
"""Names that idumb gives to operations and runs, and that git and hashes give to objects."""
SECRET_NAME = re.compile(  # an address may contain a password
    "KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|PRIVATE|AUTH|DSN|_URL$|_URI$", re.IGNORECASE
)
_WORD = re.compile("[A-Za-z]{1,20}[0-9]{0,2}|[0-9]{1,8}|[A-Za-z0-9]{1,3}")
_BETWEEN = re.compile("[-_./:@,= ]+")
_SAYS_SO = re.compile(  # whole words: AUTH does not match AUTHOR, and PGPASSWORD ends in one
    "(?:(?:PASSWORD|PASSWD|PASSPHRASE|TOKEN|SECRET|APIKEY)|(?:^|_)(?:KEY|CREDENTIAL|PRIVATE|AUTH|DSN))S?(?:_|$)",
    re.IGNORECASE,
)
_NO_SECRET = re.compile("GIT_(?:AUTHOR|COMMITTER)_.*|XAUTHORITY|.*_(?:SOCK|FILE|PATH)", re.IGNORECASE)
_PLACE = re.compile(r"~(?:/.*)?|(?:/[\w.@ -]+){2,}/?")  # a key in base64 may begin with a slash too
_LONG = 16  # part of a flag; longer values are not settings
_MIXED = re.compile("[0-9]{5,}|(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9]{3}")
SHORTEST_VALUE = 6
SHORTEST_FRAGMENT = 8
CONTEXT = 512
_QUOTED = 2
_UNQUOTED = ("", "/", "!'()*", ";/?:@&=+$,#!'()*")
"""What libraries leave unquoted: nothing, Python, and the two functions of JavaScript."""
_EITHER = (True, False)


class Redactor:
    """Removes secrets from text and finds them in bytes.

    `secrets` maps a variable's name to its value; values under 6 characters are too common to search for. Blanks
    around a value are omitted, as programs omit them: a file with CRLF lines leaves one at each end.

    `key` makes the marks of one repository comparable with each other and with nothing else. `output` redacts the
    output of programs, where more values may be secrets.
    """

    def __init__(
        self, secrets: Mapping[str, str] | None = None, *, key: bytes = b"", output: Redactor | None = None
    ) -> None:
        self._key = key
        self._output = output or self
        stripped = {name: value.strip() for name, value in (secrets or {}).items()}
        values = {name: value for name, value in stripped.items() if len(value) >= SHORTEST_VALUE}
        self._names = {_latin(text): name for name, value in sorted(values.items()) for text in spellings(value)}
        self._sorted_names = tuple(sorted(self._names))
        self.overlap = max(LONGEST, *map(len, self._sorted_names), 0)

    def redact_output(self, text: str) -> str:
        """Output of a program, without anything that may be a secret."""
        return self._output.redact(text)

    def redact(self, text: str) -> str:
        """Text that idumb writes to the log, reports and commits, without the secrets that are certain."""
        return self.data(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def redacted(self, texts: Iterable[str]) -> dict[str, str]:
        """Return the texts that hold a secret, each with its redacted form."""
        listed = tuple(texts)
        if not listed or self.redact(joined := "\n".join(listed)) == joined:
            return {}
        return {text: shown for text in listed if (shown := self.redact(text)) != text}

    def data(self, data: bytes) -> bytes:
        # Bytes are decoded as Latin-1, so every byte is one character and decoding cannot fail.
        whole = data.decode("latin-1")
        return self._marked(whole, 0, len(whole))[0].encode("latin-1")

    def stream(self) -> Stream:
        return Stream(self)

    def holds(self, text: str) -> bool:
        """Return whether a text contains anything to redact, so that most values need only one scan."""
        return next(self._matches(_latin(text, "surrogatepass")), None) is not None

    def knows_secrets(self) -> bool:
        """Return whether there is any value to search for; token forms are always known."""
        return bool(self._sorted_names)

    def find(self, pieces: Iterable[bytes]) -> tuple[tuple[str, int], ...]:
        """Return variable and line of each known value in bytes that arrive in pieces, first lines first.

        Tokens known only by their form are excluded: tests and manuals are full of examples.
        """
        sought = [(spelling.encode("latin-1"), name) for spelling, name in self._names.items()]
        longest = max((len(needle) for needle, _ in sought), default=1)
        places, text, line = set(), b"", 1
        for piece in pieces:
            text += piece
            for needle, name in sought:
                at, counted, where = text.find(needle), 0, line
                while at >= 0:
                    where, counted = where + text.count(b"\n", counted, at), at
                    places.add((where, name))
                    end = text.find(b"\n", at)
                    at = -1 if end < 0 else text.find(needle, max(end, at + 1))
            done = max(len(text) - longest + 1, 0)
            line, text = line + text.count(b"\n", 0, done), text[done:]
        return tuple((name, where) for where, name in sorted(places))

    def value(self, value: Any) -> Any:
        """Return a JSON value with every string redacted, including keys.

        Object ids and digests stay, even if a secret shares digits with them; one that is a secret is redacted.
        """
        if isinstance(value, str):
            return value if _ID.fullmatch(value) and value not in self._sorted_names else self.redact(value)
        if isinstance(value, Mapping):
            return {self.value(str(key)): self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value

    def _marked(self, text: str, start: int, end: int) -> tuple[str, int]:
        """Return `text[start:end]` with marks, and its real end.

        A secret that begins before `end` is redacted whole.
        """
        out: list[str] = []
        at = start
        for first, last, kind in self._spans(text):
            if first >= end:
                break
            if last <= at:
                continue
            out += [text[at : max(first, at)], self._mark(kind, text[first:last])]
            at = last
        if at < end:
            out.append(text[at:end])
        return "".join(out), max(at, end)

    def _spans(self, text: str) -> list[tuple[int, int, str]]:
        """Return the positions of secrets, in order and not nested."""
        matches = sorted(self._matches(text), key=lambda span: (span[0], -span[1]))
        spans: list[tuple[int, int, str]] = []
        for first, last, kind in matches:
            if spans and first < spans[-1][1]:
                # Merge two that overlap, so that no end of either remains.
                spans[-1] = (spans[-1][0], max(last, spans[-1][1]), spans[-1][2])
            else:
                spans.append((first, last, kind))
        return spans

    def _matches(self, text: str) -> Iterator[tuple[int, int, str]]:
        for spelling in self._sorted_names:
            at = text.find(spelling)
            while at >= 0:
                yield at, at + len(spelling), "value"
                # The next secret may begin inside this one.
                at = text.find(spelling, at + 1)
        for kind, prefixes, pattern in PATTERNS:
            if any(prefix in text for prefix in prefixes):
                for match in re.finditer(pattern, text):
                    yield match.start("secret"), match.end("secret"), kind

    def _mark(self, kind: str, secret: str) -> str:
        digest = hmac.new(self._key, secret.encode("latin-1"), hashlib.sha256).hexdigest()
        return f"[redacted:{kind}:{digest[:8]}]"


class Stream:
    """Redacts bytes that arrive in pieces, including a secret that is split between pieces.

    Holds back up to twice `overlap` bytes until `finish`.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._text = ""
        self._start = 0

    def feed(self, data: bytes) -> bytes:
        self._text += data.decode("latin-1")
        if len(self._text) - self._start < 2 * self._redactor.overlap:
            return b""
        return self._emit(len(self._text) - self._redactor.overlap)

    def finish(self) -> bytes:
        return self._emit(len(self._text))

    def _emit(self, end: int) -> bytes:
        out, reached = self._redactor._marked(self._text, self._start, end)  # noqa: SLF001 - two halves of one thing
        # Some patterns need the text before a secret (a host's user, the word Authorization).
        keep = max(reached - CONTEXT, 0)
        self._text = self._text[keep:]
        self._start = reached - keep
        return out.encode("latin-1")


def certain_secrets(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the values that are certainly secrets: they consist of no words and are neither paths nor flags.

    A project, a profile, a path, a model or the password `postgres` would match in half of all file names.
    """
    return {name: value for name, value in variables.items() if _is_certain(name, value)}


def _is_certain(name: str, value: str) -> bool:
    if _NO_SECRET.fullmatch(name) or _PLACE.fullmatch(value):
        return False
    parts = [part for part in _BETWEEN.split(value) if part]
    if not all(_WORD.fullmatch(part) for part in parts):
        return not (value.startswith("--") and max(map(len, parts)) < _LONG)
    # If the name says secret, pieces such as `x7k` and long numbers do not count as words.
    return bool(_SAYS_SO.search(name)) and any(_MIXED.fullmatch(part) for part in parts)


def spellings(value: str) -> set[str]:
    """Return the spellings of a value that programs print: plain, URL-, HTML-, JSON-, shell-escaped, base64, hex.

    Programs often quote each other's output, so JSON escapes may be nested.
    """
    from html import escape  # without secrets, as in most commands, nothing needs these
    from urllib.parse import quote, quote_plus

    raw = value.encode("utf-8", "surrogateescape")
    texts = {value, quote_plus(raw), shlex.quote(value).strip("'"), raw.hex()}
    texts.update(quote(raw, safe=unquoted) for unquoted in _UNQUOTED)
    texts.update(escape(value, quote=quotes) for quotes in _EITHER)
    for _ in range(_QUOTED):
        texts.update(json.dumps(spelling, ensure_ascii=plain)[1:-1] for spelling in tuple(texts) for plain in _EITHER)
    texts.update(_base64_fragments(raw))
    return {spelling for spelling in texts if len(spelling) >= SHORTEST_VALUE}


def _base64_fragments(raw: bytes) -> Iterable[str]:
    """Return the part of the base64 text that depends only on the value, for each of its three alignments."""
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + raw).decode("ascii")
        first = (before * 8 + 5) // 6
        last = (before + len(raw)) * 8 // 6
        fragment = encoded[first:last]
        if len(fragment) >= SHORTEST_FRAGMENT:
            yield fragment
            yield fragment.replace("+", "-").replace("/", "_")


def _latin(text: str, errors: str = "surrogateescape") -> str:
    return text.encode("utf-8", errors).decode("latin-1")


LONGEST = 16_384


# No letter or digit comes before a token, except one that ends a JSON escape.
_BEFORE = r"(?:(?<![A-Za-z0-9])|(?<=\\[bfnrt])|(?<=\\u[0-9a-fA-F]{4}))"


# A tab may be escaped, as in JSON.
_BLANK = r"(?:[ \t]|\\{1,3}t)"


# Atomic, and it stops before any five hyphens, so no text is scanned twice.
_PEM_BODY = r"(?>(?:[A-Za-z0-9+/=:,.\s\\]|-(?!----)){0,16000})"


_PEM_NAME = r"(?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----"


def _token(kind: str, prefixes: str, rest: str) -> tuple[str, tuple[str, ...], str]:
    """`prefixes` are literals separated by blanks; `rest` is a pattern for what follows any of them."""
    literals = tuple(prefixes.split())
    choice = "|".join(map(re.escape, literals))
    return kind, literals, f"{_BEFORE}(?P<secret>(?:{choice}){rest})"


PATTERNS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    _token("aws-key-id", "AKIA ASIA", r"[A-Z2-7]{16}(?![A-Za-z0-9])"),
    _token("github", "ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9]{30,255}"),
    _token("github", "github_pat_", r"[A-Za-z0-9_]{50,255}"),
    _token("gitlab", "glpat- gldt- glrt- glptt-", r"[A-Za-z0-9_\-]{20,255}"),
    _token("anthropic", "sk-ant-", r"[A-Za-z0-9_\-]{20,255}"),
    _token("openai", "sk-proj- sk-svcacct- sk-admin-", r"[A-Za-z0-9_\-]{20,255}"),
    _token("secret-key", "sk-", r"(?=[A-Za-z]{0,40}[0-9])[A-Za-z0-9]{32,128}"),
    _token("slack", "xoxb- xoxp- xoxa- xoxr- xoxs- xoxe- xapp-", r"[A-Za-z0-9\-]{10,255}"),
    _token("google", "AIza", r"[A-Za-z0-9_\-]{35}"),
    _token("google-oauth", "ya29. GOCSPX-", r"[A-Za-z0-9_\-]{20,1024}"),
    _token("npm", "npm_", r"[A-Za-z0-9]{36}"),
    _token("python-index", "pypi-AgE", r"[A-Za-z0-9_\-]{50,1024}"),
    _token("stripe", "sk_live_ sk_test_ rk_live_ rk_test_ whsec_", r"[A-Za-z0-9]{16,255}"),
    _token("sendgrid", "SG.", r"[A-Za-z0-9_\-]{16,64}\.[A-Za-z0-9_\-]{16,128}"),
    _token("digitalocean", "dop_v1_ doo_v1_ dor_v1_", r"[0-9a-f]{64}"),
    _token("model", "sk-or-v1- gsk_ xai- nvapi- pplx- csk-", r"(?=[A-Za-z_\-]{0,40}[0-9])[A-Za-z0-9_\-]{32,255}"),
    _token("hugging-face", "hf_", r"[A-Za-z]{30,64}(?![A-Za-z0-9])"),
    _token("vault", "hvs. hvb.", r"[A-Za-z0-9_\-]{20,512}"),
    _token("age-key", "AGE-SECRET-KEY-1", r"[0-9A-Z]{58}"),
    _token("jwt", "eyJ", r"[A-Za-z0-9_\-]{10,4000}\.eyJ[A-Za-z0-9_\-]{10,8000}\.[A-Za-z0-9_\-]{10,2000}"),
    (
        "private-key",
        ("-----BEGIN ",),
        # Without an end marker, redact the rest of a possible key, too: half of one is still a secret.
        f"(?P<secret>-----BEGIN {_PEM_NAME}{_PEM_BODY}(?:-----END {_PEM_NAME})?)",
    ),
    ("password-in-url", ("://",), r"://[^\s/:@\"'<>]{0,256}:(?P<secret>[^\s/@\"'<>]{3,512})@"),
    (
        "authorization",
        ("uthorization", "UTHORIZATION"),
        (
            rf"(?i:authorization)\\{{0,3}}[\"']?{_BLANK}{{0,4}}[:=]{_BLANK}{{0,4}}\\{{0,3}}[\"']?"
            rf"(?i:basic|bearer|token|apikey){_BLANK}{{1,4}}"
            r"(?P<secret>[A-Za-z0-9._~+/=\-]{6,4096})"
        ),
    ),
)
