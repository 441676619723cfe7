"""Measuring the members of families on a GPU, for tuning files. Needs the runtime and PyTorch."""
