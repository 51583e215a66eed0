"""From (seed, index) to examples, and from examples to batches without padding."""

from __future__ import annotations
