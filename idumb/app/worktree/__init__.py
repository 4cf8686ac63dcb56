"""The user's working tree: preconditions, drift, staged changes, exposed secrets, the base of a task."""
