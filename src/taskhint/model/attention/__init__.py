"""Causal attention over flat tokens, in several ways that give the same numbers."""
