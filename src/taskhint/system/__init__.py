"""What every room stands on: errors, files, locks, signals, progress, the one serialiser, figures
and tables.
"""
