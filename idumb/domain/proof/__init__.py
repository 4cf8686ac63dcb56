"""Proof as data: evidence, ledger, symbols, verdicts."""
