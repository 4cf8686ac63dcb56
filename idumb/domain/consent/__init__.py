"""Consent as data: needs, grants and envelopes."""
