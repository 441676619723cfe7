"""Accesses as relations of programs to elements, and what follows from them."""
