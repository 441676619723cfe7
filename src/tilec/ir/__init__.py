"""The only package that knows MLIR's Python quirks: dialect loading, types, places, passes."""
