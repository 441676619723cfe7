"""Launchers in other languages, from the manifest and the bytes of cubins alone."""
