"""Gates: one a file. Each checks something that must hold, on bytes that no builder can still change."""
