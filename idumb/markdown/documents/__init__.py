"""Documents around a plan: roadmap, research, questions, reports."""
