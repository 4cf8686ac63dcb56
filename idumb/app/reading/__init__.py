"""Commands that only read: status, next, show, metrics, envelope, handoffs."""
