"""From placed tile operations to a cubin: one file a step, named after its output."""
