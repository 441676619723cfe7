"""The IR executed with NumPy: the meaning of the language."""
