"""What the issuers of tokens put in front of them. Every pattern begins with a literal text and is bounded.

`LONGEST` is the length no match exceeds; whoever redacts a stream holds back that much. Patterns are given as text:
each is compiled when its literal is first seen, and most commands never see one.
"""

from __future__ import annotations

import re

LONGEST = 16_384

_BEFORE = r"(?<![A-Za-z0-9])"
# Possessive, and it stops before any five hyphens: so no text makes it look at one place twice.
_PEM_BODY = r"(?:[A-Za-z0-9+/=:,.\s\\]|-(?!----)){0,16000}+"
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
    _token("hugging-face", "hf_", r"[A-Za-z]{30,64}(?![A-Za-z0-9])"),
    _token("vault", "hvs. hvb.", r"[A-Za-z0-9_\-]{20,512}"),
    _token("age-key", "AGE-SECRET-KEY-1", r"[0-9A-Z]{58}"),
    _token("jwt", "eyJ", r"[A-Za-z0-9_\-]{10,4000}\.eyJ[A-Za-z0-9_\-]{10,8000}\.[A-Za-z0-9_\-]{10,2000}"),
    (
        "private-key",
        ("-----BEGIN ",),
        # Without an end the rest of what could be the key goes too: half of one is still a secret.
        f"(?P<secret>-----BEGIN {_PEM_NAME}{_PEM_BODY}(?:-----END {_PEM_NAME})?)",
    ),
    ("password-in-url", ("://",), r"://[^\s/:@\"'<>]{0,256}:(?P<secret>[^\s/@\"'<>]{3,512})@"),
    (
        "authorization",
        ("uthorization", "UTHORIZATION"),
        (
            r"(?i:authorization)[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?(?i:basic|bearer|token|apikey)[ \t]{1,4}"
            r"(?P<secret>[A-Za-z0-9._~+/=\-]{6,4096})"
        ),
    ),
)
