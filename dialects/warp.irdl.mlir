// The warp dialect: what the threads of one program share, below tiles and above addresses. It stands in functions
// that are lowered to threads, beside `llvm`, `nvvm` and `scf`, until the passes of `tilec.shared_memory` have resolved it.
//
// The unit attribute `warp.uniform` of a `scf.if`, `scf.for` or `scf.while` tells that all threads of the block take it
// alike, so that barriers may stand inside.
irdl.dialect @warp {
  irdl.operation @alloc attributes {
    summary = "The address of `bytes` of the block's shared memory, at `offset` once that is planned; with `by_warp`, no warp touches what another one does.",
    reads = [], writes = []
  } {
    %pointer = irdl.is !llvm.ptr<3>
    %bytes = irdl.base "#builtin.integer"
    irdl.attributes { "bytes" = %bytes }
    irdl.results(pointer: %pointer)
  }
}
