"""The field's tasks, position schemes and training baselines in one table."""

from __future__ import annotations

from taskhint.experiments.field.row import GROUP, Row
from taskhint.experiments.field.schemes import SCHEMES, Scheme
from taskhint.experiments.field.table import EXPERIMENTS, ROWS

__all__ = ["EXPERIMENTS", "GROUP", "ROWS", "SCHEMES", "Row", "Scheme"]
