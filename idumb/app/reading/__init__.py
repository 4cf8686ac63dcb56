"""Commands that read: status, next, show, report, metrics."""
