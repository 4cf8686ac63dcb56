"""Verification of a phase: success criteria, gaps, audit."""
