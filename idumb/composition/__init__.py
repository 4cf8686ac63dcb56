"""The one place that connects ports and implementations; each command gets its services here."""
