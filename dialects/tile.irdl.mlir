// The tile dialect: what programs mean. Element-wise work is arith and math on tensors, reductions and
// transposes are linalg, shapes are tensor, control flow is scf; here is only what MLIR does not have.
//
// A *view* is a strided memref whose memory space is a dictionary: `own` is "shared", "mut", "part" or
// "atomic"; a part also has `block`, the extents of the tile that the program owns. The extents of a part's
// memref are those of the part itself, clipped to the tensor.
// `summary` goes into docs/ops.md. `reads`/`writes` name the operands whose memory the operation touches, `updates`
// those that it touches atomically; an operation with none and `pure` may be removed, merged and hoisted by our own passes.
irdl.dialect @tile {
  irdl.operation @program_id attributes {
    summary = "The index of this program along one axis of the grid.", pure, reads = [], writes = []
  } {
    %index = irdl.is index
    %axis = irdl.base "#builtin.integer"
    irdl.attributes { "axis" = %axis }
    irdl.results(id: %index)
  }

  irdl.operation @num_programs attributes {
    summary = "The extent of the grid along one axis.", pure, reads = [], writes = []
  } {
    %index = irdl.is index
    %axis = irdl.base "#builtin.integer"
    irdl.attributes { "axis" = %axis }
    irdl.results(count: %index)
  }

  irdl.operation @grid attributes {
    summary = "The extents of the grid of a kernel without parts. Once, in the entry block.",
    reads = [], writes = []
  } {
    %index = irdl.is index
    irdl.operands(extents: variadic %index)
  }

  irdl.operation @part attributes {
    summary = "Cuts a tensor in tiles of `block`, which become the grid, and gives the view of this program's own.",
    pure, reads = [], writes = []
  } {
    %view = irdl.base "!builtin.memref"
    %block = irdl.base "#builtin.array"
    %part = irdl.base "!builtin.memref"
    irdl.attributes { "block" = %block }
    irdl.operands(view: %view)
    irdl.results(part: %part)
  }

  irdl.operation @sub attributes {
    summary = "The tile of `block` at a tile index of a part, clipped to it.", pure, reads = [], writes = []
  } {
    %index = irdl.is index
    %part = irdl.base "!builtin.memref"
    %block = irdl.base "#builtin.array"
    %sub = irdl.base "!builtin.memref"
    irdl.attributes { "block" = %block }
    irdl.operands(part: %part, indices: variadic %index)
    irdl.results(sub: %sub)
  }

  irdl.operation @part_id attributes {
    summary = "The index of a part among those of its tensor (of a sub-part: within its part), along one axis.",
    pure, reads = [], writes = []
  } {
    %index = irdl.is index
    %part = irdl.base "!builtin.memref"
    %axis = irdl.base "#builtin.integer"
    irdl.attributes { "axis" = %axis }
    irdl.operands(part: %part)
    irdl.results(id: %index)
  }

  irdl.operation @part_offset attributes {
    summary = "The first element of a part in its tensor, along one axis.", pure, reads = [], writes = []
  } {
    %index = irdl.is index
    %part = irdl.base "!builtin.memref"
    %axis = irdl.base "#builtin.integer"
    irdl.attributes { "axis" = %axis }
    irdl.operands(part: %part)
    irdl.results(offset: %index)
  }

  irdl.operation @move attributes {
    summary = "Gives a part away: the operand may not be used after.", pure, reads = [], writes = []
  } {
    %view = irdl.base "!builtin.memref"
    irdl.operands(from: %view)
    irdl.results(to: %view)
  }

  // A marker, for what the counter is computed from does not say it. `inclusive`: it may be `end` too.
  irdl.operation @in_range attributes {
    summary = "The counter of a loop, which is from `start` on and below `end`.", pure, reads = [], writes = []
  } {
    %index = irdl.is index
    %inclusive = irdl.base "#builtin.integer"
    irdl.attributes { "inclusive" = %inclusive }
    irdl.operands(counter: %index, start: %index, end: %index)
    irdl.results(same: %index)
  }

  irdl.operation @borrow attributes {
    summary = "Lends a part for as long as the result is used; alone if `mutable`.", pure, reads = [], writes = []
  } {
    %view = irdl.base "!builtin.memref"
    %mutable = irdl.base "#builtin.integer"
    irdl.attributes { "mutable" = %mutable }
    irdl.operands(from: %view)
    irdl.results(to: %view)
  }

  // `unit` is "tile" (an index counts tiles of the result's extent along its axis) or "element".
  // Elements outside the view read as `fill`, or as zero. `unsafe` (a unit attribute) marks an access in `unsafe`.
  irdl.operation @load attributes {
    summary = "Reads a tile; elements outside the view are zero, or `fill`.", reads = ["view"], writes = []
  } {
    %view = irdl.base "!builtin.memref"
    %index = irdl.is index
    %fill = irdl.any
    %tile = irdl.any
    %unit = irdl.base "#builtin.string"
    irdl.attributes { "unit" = %unit }
    irdl.operands(view: %view, indices: variadic %index, fill: optional %fill)
    irdl.results(tile: %tile)
  }

  // Of a tensor that the kernel only reads: the same number, wherever and whenever it is asked for.
  irdl.operation @element attributes {
    summary = "The element at an index of a tensor that is only read; zero outside.", pure, reads = [], writes = []
  } {
    %view = irdl.base "!builtin.memref"
    %index = irdl.is index
    %element = irdl.any
    %unit = irdl.base "#builtin.string"
    irdl.attributes { "unit" = %unit }
    irdl.operands(view: %view, indices: variadic %index)
    irdl.results(element: %element)
  }

  irdl.operation @store attributes {
    summary = "Writes a tile; elements outside the view are left out.", reads = [], writes = ["view"]
  } {
    %view = irdl.base "!builtin.memref"
    %tile = irdl.any
    %index = irdl.is index
    %unit = irdl.base "#builtin.string"
    irdl.attributes { "unit" = %unit }
    irdl.operands(view: %view, tile: %tile, indices: variadic %index)
  }

  // Of `gather`, `scatter` and `atomic`: `tiled` lists the axes of the view that a tile of indices chooses, in order;
  // `tiles` are those, of one shape, which stretches along extents of 1 to that of the result (or of what is stored);
  // `indices` are those of the other axes. `unsafe` and `unchecked` as of `load`.
  //
  // Along the axes that are not `tiled`, `indices` of `gather` and `scatter` are first elements, as in `load` with the
  // unit "element".
  irdl.operation @gather attributes {
    summary = "Reads the elements that tiles of indices choose; those outside the view are zero.",
    reads = ["view"], writes = []
  } {
    %view = irdl.base "!builtin.memref"
    %index = irdl.is index
    %chosen = irdl.base "!builtin.tensor"
    %tile = irdl.any
    %tiled = irdl.base "#builtin.array"
    irdl.attributes { "tiled" = %tiled }
    irdl.operands(view: %view, indices: variadic %index, tiles: variadic %chosen)
    irdl.results(tile: %tile)
  }

  // Where indices are equal, the CPU execution leaves the last in row-major order.
  irdl.operation @scatter attributes {
    summary = "Writes the elements that tiles of indices choose; leaves out those outside the view.",
    reads = [], writes = ["view"]
  } {
    %view = irdl.base "!builtin.memref"
    %tile = irdl.any
    %index = irdl.is index
    %chosen = irdl.base "!builtin.tensor"
    %tiled = irdl.base "#builtin.array"
    irdl.attributes { "tiled" = %tiled }
    irdl.operands(view: %view, tile: %tile, indices: variadic %index, tiles: variadic %chosen)
  }

  // `update` is "load", "swap", "compare_exchange" (its `values` are what is expected and what is new), "add", "min", "max",
  // "umin", "umax", "and", "or" or "xor"; `ordering` is "relaxed" or "acq_rel", at the scope of the device. One
  // update for each element of `tiles`, all with the same `indices` along the other axes; one for all if there are none.
  irdl.operation @atomic attributes {
    summary = "Updates elements atomically and gives what they were before, zero for those outside the view.",
    reads = [], writes = [], updates = ["view"]
  } {
    %view = irdl.base "!builtin.memref"
    %index = irdl.is index
    %chosen = irdl.base "!builtin.tensor"
    %value = irdl.any
    %old = irdl.any
    %tiled = irdl.base "#builtin.array"
    %update = irdl.base "#builtin.string"
    %ordering = irdl.base "#builtin.string"
    irdl.attributes { "tiled" = %tiled, "update" = %update, "ordering" = %ordering }
    irdl.operands(view: %view, indices: variadic %index, tiles: variadic %chosen, values: variadic %value)
    irdl.results(old: %old)
  }

  irdl.operation @iota attributes {
    summary = "The tile 0, 1, 2, …", pure, reads = [], writes = []
  } {
    %tile = irdl.base "!builtin.tensor"
    irdl.results(tile: %tile)
  }

  irdl.operation @flip attributes {
    summary = "The tile in reverse order along one axis.", pure, reads = [], writes = []
  } {
    %tile = irdl.base "!builtin.tensor"
    %axis = irdl.base "#builtin.integer"
    irdl.attributes { "axis" = %axis }
    irdl.operands(tile: %tile)
    irdl.results(flipped: %tile)
  }

  // One to four tiles of one shape, then what each starts from, which lacks the axis. The block combines what is so far (one
  // scalar a tile) with the next elements, and hands over what is so far then; `gpu.yield` ends it, for IRDL has no
  // terminators. Tiles may differ in type, which nothing variadic may in IRDL.
  irdl.operation @scan attributes {
    summary = "Each element combined with all before it along one axis (`reverse`: all after it), from `starts` on.",
    pure, reads = [], writes = []
  } {
    %tile0 = irdl.base "!builtin.tensor"
    %tile1 = irdl.base "!builtin.tensor"
    %tile2 = irdl.base "!builtin.tensor"
    %tile3 = irdl.base "!builtin.tensor"
    %start0 = irdl.base "!builtin.tensor"
    %start1 = irdl.base "!builtin.tensor"
    %start2 = irdl.base "!builtin.tensor"
    %start3 = irdl.base "!builtin.tensor"
    %axis = irdl.base "#builtin.integer"
    %reverse = irdl.base "#builtin.integer"
    %combiner = irdl.region
    irdl.attributes { "axis" = %axis, "reverse" = %reverse }
    irdl.operands(
      tile0: %tile0, tile1: optional %tile1, tile2: optional %tile2, tile3: optional %tile3,
      start0: %start0, start1: optional %start1, start2: optional %start2, start3: optional %start3
    )
    irdl.results(
      scanned0: %tile0, scanned1: optional %tile1, scanned2: optional %tile2, scanned3: optional %tile3
    )
    irdl.regions(combiner: %combiner)
  }

  irdl.operation @saturating_cast attributes {
    summary = "Float to integer (truncates toward zero, saturates, NaN gives 0), or to f8 (nearest even, saturates).",
    pure, reads = [], writes = []
  } {
    %from = irdl.any
    %to = irdl.any
    %signed = irdl.base "#builtin.integer"
    irdl.attributes { "signed" = %signed }
    irdl.operands(from: %from)
    irdl.results(to: %to)
  }

  irdl.operation @assume attributes {
    summary = "A precondition on extents and scalars (`requires!`), which every launcher checks.", reads = [], writes = []
  } {
    %bool = irdl.is i1
    %text = irdl.base "#builtin.string"
    irdl.attributes { "text" = %text }
    irdl.operands(condition: %bool)
  }

  irdl.operation @assert attributes {
    summary = "What must hold when the program gets here (`assert!`); trapped by checked builds.", reads = [], writes = []
  } {
    %bool = irdl.is i1
    %text = irdl.base "#builtin.string"
    irdl.attributes { "text" = %text }
    irdl.operands(condition: %bool)
  }

  // Placed by `insert_traps` in checked builds, never written by a user. The condition is a truth value or a tile of them.
  irdl.operation @trap_unless attributes {
    summary = "Ends the launch with a message and its place unless the condition holds throughout.", reads = [], writes = []
  } {
    %condition = irdl.any
    %text = irdl.base "#builtin.string"
    irdl.attributes { "text" = %text }
    irdl.operands(condition: %condition)
  }

  // Placed by `place_layouts`, never written by a user: the two types differ in their encoding only.
  irdl.operation @layout attributes {
    summary = "The same tile held by the threads in another layout.", pure, reads = [], writes = []
  } {
    %from = irdl.base "!builtin.tensor"
    %to = irdl.base "!builtin.tensor"
    irdl.operands(from: %from)
    irdl.results(to: %to)
  }

  // Placed by `insert_barriers`, never written by a user.
  irdl.operation @barrier attributes {
    summary = "All accesses of the program to memory before it are done before those after it.", reads = [], writes = []
  } {
  }
}
