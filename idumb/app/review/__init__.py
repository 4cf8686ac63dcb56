"""A contract before it runs: check-plan, approve, amend, consent."""
