"""Run directories: recipe, environment, metrics, checkpoints."""
