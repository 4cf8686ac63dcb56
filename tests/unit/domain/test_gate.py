"""What a gate found, as evidence and in lines (R-GATE-1)."""

from __future__ import annotations

from msgspec.structs import replace

from idumb.domain.proof import evidence, gate, gate_table
from idumb.domain.proof.evidence import Evidence
from idumb.domain.proof.gate import Judged, Violation

SYNTAX = gate_table.of_name("syntax")
BROKEN = Evidence("gate syntax", "it parses", evidence.ERRORED)


def test_violations_fail_a_gate_and_words_do_not() -> None:
    assert SYNTAX is not None
    passed = Evidence("gate syntax", SYNTAX.summary, evidence.PASSED, output="3 files", level=2)
    assert gate.evidence_of("syntax", Judged(words="3 files"), 2) == (passed,)
    found = Judged((Violation("a.py", 3, "no"),), words="3 files")
    failed = replace(passed, result=evidence.FAILED, output="a.py:3: no")
    assert gate.evidence_of("syntax", found, 2) == (failed,)
    assert gate.evidence_of("theirs", Judged(), 1) == (Evidence("gate theirs", "theirs", evidence.PASSED),)


def test_evidence_of_a_gate_s_own_form_gets_its_level() -> None:
    assert gate.evidence_of("syntax", Judged((), "", (BROKEN,)), 0) == (replace(BROKEN, level=0),)


def test_a_violation_has_the_place_that_it_knows() -> None:
    known = (Violation("a.py", 3, "one"), Violation("a.py", 0, "two"), Violation("", 0, "three"))
    assert gate.lines(known) == "a.py:3: one\na.py: two\nthree"


def test_twenty_violations_are_shown_and_the_rest_is_counted() -> None:
    many = [Violation("", 0, str(number)) for number in range(22)]
    assert gate.lines(many[:20]).splitlines() == [str(number) for number in range(20)]
    assert gate.lines(many[:21]).splitlines()[19:] == ["19", "and 1 more"]
    assert gate.lines(many).splitlines()[19:] == ["19", "and 2 more"]
