"""Warp specialisation: the program once for each role, as a schedule says."""
