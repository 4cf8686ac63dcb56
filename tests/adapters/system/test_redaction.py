"""Secrets are redacted before anything is stored (R-LOG-3)."""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from idumb.system.redaction import LONGEST, PATTERNS, Redactor
from tests.support.cases import every
from tests.support.growth import assert_linear
from tests.support.seed import one_on_a_push

SECRET = "p@ss w'or\"d/ünï\\+=1"
MARK = re.compile(r"\[redacted:[a-z-]+:[0-9a-f]{8}\]")

# Assembled, so that no scanner takes this file for a leak.
SAMPLES = {
    "aws-key-id": "AKIA" + "ABCDEFGHIJKLMNOP",
    "github": "ghp_" + "a1B2" * 9,
    "gitlab": "glpat-" + "x_Y-" * 5,
    "anthropic": "sk-ant-" + "api03-abc_DEF" * 3,
    "openai": "sk-proj-" + "abc_DEF1" * 5,
    "secret-key": "sk-" + "abcdEFGH1234" * 4,
    "slack": "xoxb-" + "123456789012-abcdefghijkl",
    "google": "AIza" + "Sy_ABCDEFGHIJKLMNOPQRSTUVWXYZ012345"[:35],
    "google-oauth": "ya29." + "a0AfH6SMBabcdefghijklmnop",
    "npm": "npm_" + "abcdEFGH1" * 4,
    "python-index": "pypi-AgE" + "abcDEF123_" * 6,
    "stripe": "sk_live_" + "abcdEFGH12345678",
    "sendgrid": "SG." + "abcdefghijklmnopqr" + "." + "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "digitalocean": "dop_v1_" + "0123456789abcdef" * 4,
    "model": "gsk_" + "abcdEFGH1" * 5,
    "hugging-face": "hf_" + "abcdefghijKLMNOPQRST" * 2,
    "vault": "hvs." + "CAESIabcdefghijklmnopqrstuv",
    "age-key": "AGE-SECRET-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L" + "QPZRY9X8GF2TVDW0S3JN54KHCE"[:26],
    "jwt": "eyJ" + "hbGciOiJIUzI1NiJ9" + ".eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0" + ".dozjgNryP4J3jVmNHl0w5N",
    "private-key": "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEow\nIBAAKC/+=\n-----END RSA " + "PRIVATE KEY-----",
    "password-in-url": "hunter2secret",
    "authorization": "dXNlcjpwYXNzd29yZA==",
}
SURROUNDINGS = {
    "password-in-url": "clone https://user:{}@example.invalid/x.git now",
    "authorization": "> Authorization: Basic {}\r\n> Accept: */*",
}


def sample(kind: str) -> tuple[str, str]:
    """(the secret, a text that contains it)."""
    return SAMPLES[kind], SURROUNDINGS.get(kind, 'before "{}", after').format(SAMPLES[kind])


def test_every_pattern_has_a_sample() -> None:
    assert {kind for kind, _, _ in PATTERNS} == set(SAMPLES)


@every("kind", SAMPLES)
def test_a_token_is_recognized_by_its_issuer_s_prefix(kind: str) -> None:
    secret, text = sample(kind)
    out = Redactor().redact(text)
    assert secret not in out
    assert f"[redacted:{kind}:" in out
    before, after = text.split(secret)
    assert out.startswith(before)
    assert out.endswith(after)


@every("kind", SAMPLES)
def test_a_token_split_between_chunks_is_redacted(kind: str) -> None:
    _, text = sample(kind)
    whole = Redactor().redact(text)
    for cut in range(len(text)):
        stream = Redactor().stream()
        out = stream.feed(text[:cut].encode()) + stream.feed(text[cut:].encode()) + stream.finish()
        assert out.decode() == whole


@pytest.mark.nightly
@every("kind", SAMPLES)
def test_a_token_is_redacted_anywhere_in_a_long_stream(kind: str) -> None:
    """Around the end of a chunk, and around the place where a stream emits what it held back."""
    secret, text = sample(kind)
    data = text.encode()
    for near in (LONGEST, 2 * LONGEST):
        for cut in (0, 1, data.index(secret.encode()), len(data) // 2, len(data)):
            offset = near - cut
            stream = Redactor().stream()
            whole = b"." * (offset - 1) + b" " + data + b"." * 100
            whole += b"." * (2 * LONGEST - len(whole))
            out = stream.feed(whole[: 2 * LONGEST]) + stream.feed(whole[2 * LONGEST :]) + stream.finish()
            assert secret.encode() not in out
            assert len(MARK.findall(out.decode())) == 1


def test_a_stream_emits_output_while_it_continues() -> None:
    """Else a gigabyte of output would stand in memory."""
    redactor = Redactor()
    stream = redactor.stream()
    for _ in range(50):
        stream.feed(b"." * 10_000)
        assert len(stream._text) < 3 * redactor.overlap


@every(
    "spell",
    [
        str,
        lambda value: quote(value, safe=""),
        quote,
        lambda value: quote(value, safe="!'()*"),
        html.escape,
        lambda value: html.escape(value, quote=False),
        quote_plus,
        lambda value: json.dumps({"password": value}),
        lambda value: json.dumps({"password": value}, ensure_ascii=False),
        lambda value: json.dumps({"line": json.dumps({"password": value})}),
        lambda value: json.dumps({"line": f"login --password {shlex.quote(value)}"}),
        lambda value: f"login --password {shlex.quote(value)}",
        lambda value: value.encode().hex(),
        lambda value: base64.b64encode(value.encode()).decode(),
        lambda value: base64.urlsafe_b64encode(value.encode()).decode(),
        lambda value: base64.b64encode(f"user:{value}".encode()).decode(),
        lambda value: base64.b64encode(f"me:{value}:more".encode()).decode(),
        lambda value: base64.b64encode(f"u:{value}".encode()).decode(),
    ],
)
def test_a_known_value_is_redacted_in_every_encoding(spell: object) -> None:
    text = spell(SECRET)  # type: ignore[operator]
    out = Redactor({"PASSWORD": SECRET}).redact(f"x {text} y")
    assert "[redacted:value:" in out
    core = SECRET.encode().hex()[8:-8]
    for form in (SECRET, text):
        assert form not in out
    assert core not in out


def test_a_value_is_known_without_the_blanks_around_it() -> None:
    redactor = Redactor({"MY_KEY": " x7kAA11Zq9wLm3\r\n", "SHORT": "abc   \n"})
    assert "x7k" not in redactor.redact("key x7kAA11Zq9wLm3, and")
    assert redactor.find([b"abc x7kAA11Zq9wLm3"]) == (("MY_KEY", 1),)


def test_a_value_that_is_too_short_is_not_redacted() -> None:
    assert Redactor({"DEBUG": "1", "EMPTY": ""}).redact("1 and 11") == "1 and 11"


def test_a_value_inside_another_leaves_no_remainder() -> None:
    out = Redactor({"A": "secret-one", "B": "secret-one-and-more", "C": "more-still"}).redact(
        "secret-one-and-more-still"
    )
    assert MARK.sub("", out) == ""


def test_bytes_that_are_not_text_pass_through() -> None:
    data = bytes(range(256)) * 200
    assert Redactor({"A": "something"}).data(data) == data
    stream = Redactor().stream()
    assert stream.feed(data) + stream.finish() == data


def test_equal_secrets_have_equal_marks_within_one_repository_only() -> None:
    secret, _ = sample("github")
    first = Redactor(key=b"one").redact(secret)
    assert Redactor(key=b"one").redact(f"again {secret}") == f"again {first}"
    assert Redactor(key=b"two").redact(secret) != first


def test_strings_anywhere_in_a_json_value_are_redacted() -> None:
    secret, _ = sample("npm")
    out = Redactor().value({"a": [secret, 1, None, True], secret: {"b": (secret,)}})
    assert secret not in json.dumps(out)
    assert json.loads(json.dumps(out))["a"][1:] == [1, None, True]


def test_ordinary_output_is_unchanged() -> None:
    lines = (
        "commit 0123456789abcdef0123456789abcdef01234567",
        "task-0123456789abcdef0123456789abcdef and risk-abcdefghijklmnopqrstuvwxyz0123456789",
        "https://example.invalid:8080/path@v1 git@example.invalid:owner/name.git",
        "sk-spinner-container-fading-circle-twelve-dots hf_hub_download xoxb eyJhbGci ghp_short",
        "Authorization: required; sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
    )
    text = "\n".join(lines)
    assert Redactor().redact(text) == text


def test_a_private_key_without_its_end_is_redacted_too() -> None:
    cut = "-----BEGIN " + "PRIVATE KEY-----\nMIIEowIBAAKCAQEA\nabcd"
    out = Redactor().redact(cut)
    assert MARK.fullmatch(out)


ATTACKS = ["sk-", "-eyJ", "://a:", "-----BEGIN PRIVATE KEY-----", "Authorization: Basic ", "ghp_"]


@pytest.mark.parametrize("attack", one_on_a_push(ATTACKS, "beginning of a secret"))
def test_redaction_takes_linear_time(attack: str) -> None:
    redact = Redactor().redact
    assert_linear(redact, lambda size: attack * size)
    assert_linear(redact, lambda size: (attack + "a" * 50) * size)


@given(st.lists(st.binary(max_size=200), max_size=8), st.sampled_from(sorted(SAMPLES)), st.integers(0, 7))
def test_a_stream_is_redacted_like_the_whole_text(pieces: list[bytes], kind: str, place: int) -> None:
    pieces.insert(min(place, len(pieces)), sample(kind)[1].encode())
    redactor = Redactor({"A": SECRET})
    stream = redactor.stream()
    out = b"".join(stream.feed(piece) for piece in pieces) + stream.finish()
    assert out == redactor.data(b"".join(pieces))


def test_object_ids_are_unchanged_unless_one_is_the_secret() -> None:
    """R-LOG-3: digits that a secret shares with a digest must not cost a tree."""
    digest, token = "ab123456cd" * 4, "0123456789" * 4
    redactor = Redactor({"PIN": "123456", "OLD_TOKEN": token})
    redacted = redactor.value({"tree": digest, "said": f"the pin is 123456, the tree {digest}", token: [token, 123456]})
    assert redacted["tree"] == digest
    assert "123456" not in redacted["said"]
    assert token not in str(redacted)
    assert redactor.holds('{"a": "123456"}')
    assert not redactor.holds('{"a": "12345"}')


@given(st.binary(max_size=40), st.integers(1, 7), st.integers(0, 3))
def test_a_known_value_is_located_by_line_however_the_bytes_are_split(before: bytes, size: int, lines: int) -> None:
    """R-LOG-3."""
    whole = before + b"\n" * lines + b"key = hunter-Zq81\nrest\n"
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    places = Redactor({"API_TOKEN": "hunter-Zq81", "SHORT": "abc"}).find(pieces)
    assert places == (("API_TOKEN", before.count(b"\n") + lines + 1),)
    assert Redactor({}).find(pieces) == ()


def test_cost_grows_linearly_with_the_number_of_hits() -> None:
    """R-LOG-3: lines are counted once, not again from the start for every hit."""

    class Counted(bytes):
        looked = 0

        def count(self, *arguments: Any) -> int:
            start, end = arguments[1:] or (0, len(self))
            Counted.looked += end - start
            return bytes.count(self, *arguments)

        def __radd__(self, other: bytes) -> Counted:
            return Counted(bytes(other) + bytes(self))

    lines = Counted(b"hunter-Zq81\n" * 2_000)
    assert len(Redactor({"A": "hunter-Zq81"}).find([lines])) == 2_000
    assert 0 < Counted.looked < 20 * len(lines)


@every(
    "text",
    [
        *(f"{before}ghp_{'a1b2' * 9}" for before in ("line\n", "tab\t", "é", "\x07", 'Authorization: "')),
        json.dumps({"Authorization": "Bearer abcdef123456"}),
        "Authorization:\tBearer abcdef123456",
        "Authorization: Bearer\tabcdef123456",
        "Authorization\t:\t Token\t\tabcdef123456",
    ],
)
def test_a_token_and_a_header_are_recognized_in_json_as_in_text(text: str) -> None:
    """In JSON, the last character of an escape directly precedes the token."""
    assert Redactor().holds(text)
    assert Redactor().holds(json.dumps({"headers": text}))
