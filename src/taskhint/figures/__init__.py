"""Pictures of results. A figure takes computed values and computes nothing."""
