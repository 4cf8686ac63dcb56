"""Gates, one per file. Each checks a condition on bytes that no builder can still change."""
