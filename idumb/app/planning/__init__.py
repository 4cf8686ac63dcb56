"""Plans before they exist: research, discussion, planner and checker, the roadmap."""
