"""Configuration, tool policy and prompt files."""
