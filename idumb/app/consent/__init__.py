"""Approvals, what they bind, and the questions that ask for them."""
