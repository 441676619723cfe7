"""tilec: small Rust-flavoured tile programs, compiled ahead of time to CUDA cubins."""

__version__ = "0.1.0"
