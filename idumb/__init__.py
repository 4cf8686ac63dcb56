"""idumb runs plans written in Markdown as contracts: checked, executed, proven, resumable."""

__version__ = "0.1.0"
