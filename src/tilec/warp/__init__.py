"""Whether what roles and channels do is right: the verifier of the `warp` dialect."""
