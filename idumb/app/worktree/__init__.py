"""The user's working tree: preconditions, delivery, rewritten commits, exposed secrets, the base of a task."""
