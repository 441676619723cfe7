"""Rewrites of the IR, one pass a file."""
