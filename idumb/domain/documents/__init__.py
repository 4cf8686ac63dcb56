"""Texts around a plan that need no library: questions, replies with plans, stated criteria."""
