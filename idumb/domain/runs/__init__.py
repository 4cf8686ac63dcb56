"""A run as data: events, state, decisions, spending, handoffs."""
