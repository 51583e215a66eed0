"""Experiments of our own, as data."""
