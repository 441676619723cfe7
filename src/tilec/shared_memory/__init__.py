"""Shared memory of a function that is lowered to threads: where buffers lie, and what orders them.

Lowering takes a buffer where it needs one (`warp.alloc`) and accesses it, and says nothing of
offsets and barriers. `finish` derives both, one file a step:

    plan_offsets      buffers that are never in use at one time may share bytes
    place_barriers    between any two accesses to the same bytes, one of which writes
    verify            the result, again, by another algorithm
    use               what came of it, for the report of a build
    resolve           buffers become addresses
"""
