"""Commands that read: status, next, show, report, log, metrics."""
