"""Plans of other tools that `idumb import` writes anew: their formats."""
