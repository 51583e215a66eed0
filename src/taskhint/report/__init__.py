"""Tables and pages, made from result files alone."""
