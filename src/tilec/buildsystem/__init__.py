"""Building many files: child processes, reuse, atomic writing. Knows no stage."""
