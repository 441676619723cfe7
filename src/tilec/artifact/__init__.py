"""What a compiled kernel is outside the compiler: its manifest, and the cubin that carries it."""
