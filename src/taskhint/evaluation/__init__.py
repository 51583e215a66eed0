"""Accuracy by length: exact, in one pass, with intervals."""
