"""From the loops of a kernel to who does what, and when."""
