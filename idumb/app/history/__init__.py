"""Rollback and undo: restore paths, compensate effects, replay recordings."""
