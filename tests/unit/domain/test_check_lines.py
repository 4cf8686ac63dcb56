"""The line that a message proposes is right for a configuration that sets the section already."""

from __future__ import annotations

from idumb.domain import check_lines
from idumb.domain.settings import CheckoutSettings, CheckSettings
from idumb.markdown.settings import configuration

PRESENT = CheckoutSettings(provide=("data.log",), prepare=("make: deps",), limit=8)


def test_the_line_keeps_what_is_set() -> None:
    home = check_lines.adding("checks", CheckSettings(control="off"), {"home": "user"})
    assert home == "replace `checks` in .idumb/config.yaml by `checks: {home: user, control: off}`"
    line = "checkout: {provide: [data.log, b c.log], prepare: ['make: deps'], limit: 8}"
    provided = check_lines.adding("checkout", PRESENT, {"provide": ["b c.log", "data.log"]})
    assert provided == f"replace `checkout` in .idumb/config.yaml by `{line}`"


def test_a_section_that_is_not_set_is_added() -> None:
    words = check_lines.adding("checkout", CheckoutSettings(), {"prepare": ["npm ci"]})
    assert words == "add `checkout: {prepare: [npm ci]}` to .idumb/config.yaml"


def test_the_line_can_be_read_again() -> None:
    text = check_lines.line("checkout", PRESENT, {"cache": ("out", "out/**", "it's")})
    settings, findings = configuration.read(f"{text}\n".encode())
    cache = ("out", "out/**", "it's")
    wanted = CheckoutSettings(provide=("data.log",), prepare=("make: deps",), cache=cache, limit=8)
    assert (findings, settings and settings.checkout) == ((), wanted)
