"""Documents that idumb writes: SUMMARY, VERIFICATION, checkpoints, handoffs, progress."""
