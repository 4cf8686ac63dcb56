"""Agents that build nothing: how they are called, and their opinions."""
