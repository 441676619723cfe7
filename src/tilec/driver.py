"""The stages in order, and why in that order; nothing else."""
