"""From text to IR: parsing, names, types, constants, instances, emission."""
