"""Documents around a plan that a library reads: roadmap, research, reports; and scripts of fake models."""
