"""Consent as data: approvals and envelopes."""
