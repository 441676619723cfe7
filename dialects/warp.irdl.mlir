// The warp dialect: what the threads of one program share and who does what, below tiles and above addresses.
//
// A *channel* is a ring of `depth` slots in shared memory, each of which holds a tile of every type in `tiles` (memrefs,
// in the order of the tensor's axes). One role fills slots: `acquire` waits until a slot is free, `fill` has the
// hardware copy a tile into it, `publish` hands it on once every tile was filled. The other one reads them in the same
// order: `get` waits until the next slot is full, `release` frees it. A slot is a linear value: it is given up exactly
// once on every path, to its own channel. What `no_slot` gives is none: it may be given up, or not.
// `roles` has the program once for each role: the first region is the loader's, the second that of the math warps. Both
// end in `gpu.yield`, for IRDL has no terminators. Both take slots in loops of equal bounds and branches of equal
// conditions. The loader has no tiles, and writes nothing.
// A block may do several programs: `program` says which one, and their order is that of the kernel's `warp.rows_together`.
// Both roles say the same ones.
// Blocks of a kernel with `warp.cluster` work together, so many along one or two axes of the grid: they do neighbours at each
// step, and take slots of a channel with `shared` tiles as one. A `fill` of such a tile copies a part of it to all of
// them, a `release` frees the slot for all. They `meet` before anything of the others is used, and the loader `close`s such
// channels at the end. Programs that no neighbours are left for are done without sharing; where there is none for a block,
// it does one that another does too, and `is_program` tells that it must not write.
// The math warps may be several *teams*, each of which does programs of its own, by turns (the kernel's `warp.teams`). All of
// them see all programs of the block: `mine` tells whether the team does this one. Else it goes past the slots of it, each
// by `skip`. A team takes slots between `await_turn`, until the team that does the program before has got all of its slots,
// and `pass_turn`. A turn is a linear value.
// The blocks of a kernel with `warp.split` do each program together, so many at a time: each a `share` of the turns of the
// one loop that adds to sums. Then they `offer` their sums in shared memory, `join`, and the block that `leads` has the
// `total`; it alone does what follows. Of many blocks each may first `add` up a part, and they `join` again. They `join` again, so that what is offered is there until it was read. The leading
// block starts from what the loop starts from, others from zero (`start`).
// `dot` begins a product, which is done once `wait` gives its sums, or `drain` has waited until no more than `pending`
// products are under way: only then may the slots that it reads be released, and the tile that it takes from registers be made anew. Its sums are under way until `wait` gives
// them: products may add to them, loops and branches hand them on, once on every path, and nothing else uses them.
// A factor that math warps compute may go through a `buffer`: they `write` it, each what it holds, `show` what they wrote,
// and come together (`join_warps`) before products read it. A place of the buffer is written again when the products of
// all warps that read it are done: a wait or drain comes first, and then the warps come together.
// `tilec.warp` proves all of that, after every pass.
//
// The unit attribute `warp.uniform` of a `scf.if`, `scf.for` or `scf.while` tells that all threads of the block take it
// alike, so that barriers may stand inside.
irdl.dialect @warp {
  irdl.type @ring {}
  irdl.type @place {}
  irdl.type @turn {}
  irdl.type @offered {}
  irdl.type @places {}

  irdl.operation @first_program attributes {
    summary = "The number of the first program that this block does; it goes on in steps of `program_step`.",
    reads = [], writes = []
  } {
    %index = irdl.is index
    irdl.results(number: %index)
  }

  irdl.operation @program_step attributes {
    summary = "How many blocks there are.", reads = [], writes = []
  } {
    %index = irdl.is index
    irdl.results(count: %index)
  }

  irdl.operation @program_count attributes {
    summary = "How many programs there are.", reads = [], writes = []
  } {
    %index = irdl.is index
    irdl.results(count: %index)
  }

  irdl.operation @program attributes {
    summary = "From here on, to the end of the block of operations, it is the program of this number that is done.",
    reads = [], writes = []
  } {
    %index = irdl.is index
    irdl.operands(number: %index)
  }

  irdl.operation @meet attributes {
    summary = "All threads of the blocks of a cluster have come here, with the barriers in memory that they made.",
    reads = [], writes = []
  } {}

  irdl.operation @is_program attributes {
    summary = "Whether no other block of the cluster does the program that this one does.",
    reads = [], writes = []
  } {
    %bit = irdl.is i1
    irdl.results(is: %bit)
  }

  irdl.operation @share attributes {
    summary = "Where the turns begin and end that this block does of a loop with these bounds: the blocks of its cluster have as many each, in order, or one more.",
    pure, reads = [], writes = []
  } {
    %index = irdl.is index
    irdl.operands(lower: %index, upper: %index, step: %index)
    irdl.results(first: %index, end: %index)
  }

  irdl.operation @leads attributes {
    summary = "Whether this block goes on after the sums of its cluster.", pure, reads = [], writes = []
  } {
    %truth = irdl.is i1
    irdl.results(is_leading: %truth)
  }

  irdl.operation @start attributes {
    summary = "The tile, in the block that leads; zeros in others.", pure, reads = [], writes = []
  } {
    %sums = irdl.base "!builtin.tensor"
    irdl.operands(from: %sums)
    irdl.results(sums: %sums)
  }

  irdl.operation @offer attributes {
    summary = "Keeps tiles in shared memory to the end, where other blocks of the cluster may read them.", reads = [], writes = []
  } {
    %offered = irdl.base @warp::@offered
    %sums = irdl.base "!builtin.tensor"
    irdl.operands(sums: variadic %sums)
    irdl.results(offered: %offered)
  }

  irdl.operation @join attributes {
    summary = "All threads of the blocks of a cluster have come here, and see what was offered before.", reads = [], writes = []
  } {
    %offered = irdl.base @warp::@offered
    irdl.operands(offered: %offered)
  }

  irdl.operation @add attributes {
    summary = "Each block adds up a part of what all have offered, in the order of blocks, and offers that instead.", reads = [], writes = []
  } {
    %offered = irdl.base @warp::@offered
    irdl.operands(offered: %offered)
  }

  irdl.operation @total attributes {
    summary = "In the block that leads, its own tiles with those of all others added, in the order of blocks; with `of_parts`, of what each has added up.", reads = [], writes = []
  } {
    %offered = irdl.base @warp::@offered
    %sums = irdl.base "!builtin.tensor"
    irdl.operands(offered: %offered, sums: variadic %sums)
    irdl.results(totals: variadic %sums)
  }

  irdl.operation @mine attributes {
    summary = "Whether this team does the program: each time another one does, in a circle.", reads = [], writes = []
  } {
    %truth = irdl.is i1
    irdl.results(is_mine: %truth)
  }

  irdl.operation @await_turn attributes {
    summary = "Waits until the team that does the program before has got all slots of it.", reads = [], writes = []
  } {
    %turn = irdl.base @warp::@turn
    irdl.results(turn: %turn)
  }

  irdl.operation @pass_turn attributes {
    summary = "Gives the turn to the team that does the next program: all slots of this one were got. With the number, end and step of the loop around it, only in the last turn of that.",
    reads = [], writes = []
  } {
    %turn = irdl.base @warp::@turn
    %index = irdl.is index
    irdl.operands(turn: %turn, loop: variadic %index)
  }

  irdl.operation @skip attributes {
    summary = "Goes past the next slot of a channel, which another team gets.", reads = [], writes = []
  } {
    %ring = irdl.base @warp::@ring
    irdl.operands(channel: %ring)
  }

  irdl.operation @channel attributes {
    summary = "A ring of `depth` slots, each of which holds tiles of these memref types, of these parameters.",
    reads = [], writes = []
  } {
    %ring = irdl.base @warp::@ring
    %depth = irdl.base "#builtin.integer"
    %tiles = irdl.base "#builtin.array"
    %params = irdl.base "#builtin.array"
    irdl.attributes { "depth" = %depth, "tiles" = %tiles, "params" = %params }
    irdl.results(channel: %ring)
  }

  irdl.operation @roles attributes {
    summary = "The program once for each role. Units: registers of a thread, 0 for what the launch gives.",
    reads = [], writes = []
  } {
    %math = irdl.base "#builtin.integer"
    %few = irdl.base "#builtin.integer"
    %many = irdl.base "#builtin.integer"
    irdl.attributes { "math_warps" = %math, "loader_registers" = %few, "math_registers" = %many }
    %first = irdl.region
    %second = irdl.region
    irdl.regions(loader: %first, math: %second)
  }

  irdl.operation @acquire attributes {
    summary = "The next slot of a channel, once it is free.", reads = [], writes = []
  } {
    %ring = irdl.base @warp::@ring
    %place = irdl.base @warp::@place
    irdl.operands(channel: %ring)
    irdl.results(slot: %place)
  }

  irdl.operation @fill attributes {
    summary = "Copies the tile at `indices`, counted in `unit`s of a tensor's own axes, into tile number `tile` of a slot.",
    reads = [], writes = []
  } {
    %ring = irdl.base @warp::@ring
    %place = irdl.base @warp::@place
    %view = irdl.base "!builtin.memref"
    %index = irdl.is index
    %tile = irdl.base "#builtin.integer"
    %unit = irdl.base "#builtin.string"
    irdl.attributes { "tile" = %tile, "unit" = %unit }
    irdl.operands(channel: %ring, slot: %place, view: %view, indices: variadic %index)
  }

  irdl.operation @publish attributes {
    summary = "Hands a slot on: it is full once all that `fill` began has come.", reads = [], writes = []
  } {
    %ring = irdl.base @warp::@ring
    %place = irdl.base @warp::@place
    irdl.operands(channel: %ring, slot: %place)
  }

  irdl.operation @close attributes {
    summary = "Waits until all slots of a channel are free for good: no other block of the cluster comes here any more.",
    reads = [], writes = []
  } {
    %ring = irdl.base @warp::@ring
    irdl.operands(channel: %ring)
  }

  irdl.operation @get attributes {
    summary = "The next slot of a channel, once it is full.", reads = [], writes = []
  } {
    %ring = irdl.base @warp::@ring
    %place = irdl.base @warp::@place
    irdl.operands(channel: %ring)
    irdl.results(slot: %place)
  }

  irdl.operation @no_slot attributes {
    summary = "What stands for a slot where there is none yet; to release it does nothing.", reads = [], writes = []
  } {
    %place = irdl.base @warp::@place
    irdl.results(slot: %place)
  }

  irdl.operation @tile attributes {
    summary = "Tile number `tile` of a slot.", pure, reads = [], writes = []
  } {
    %ring = irdl.base @warp::@ring
    %place = irdl.base @warp::@place
    %memref = irdl.base "!builtin.memref"
    %tile = irdl.base "#builtin.integer"
    irdl.attributes { "tile" = %tile }
    irdl.operands(channel: %ring, slot: %place)
    irdl.results(memory: %memref)
  }

  irdl.operation @read attributes {
    summary = "The elements of a tile of a slot, in registers: axis i is axis `axes[i]` of the tensor. The channel has the unit attribute `by_warp`.",
    pure, reads = [], writes = []
  } {
    %memref = irdl.base "!builtin.memref"
    %tensor = irdl.base "!builtin.tensor"
    %axes = irdl.base "#builtin.array"
    irdl.attributes { "axes" = %axes }
    irdl.operands(memory: %memref)
    irdl.results(tile: %tensor)
  }

  irdl.operation @buffer attributes {
    summary = "Room in shared memory for `depth` tiles of the one memref type in `tiles`, which math warps write, one after the other, and products read.",
    reads = [], writes = []
  } {
    %buffer = irdl.base @warp::@places
    %depth = irdl.base "#builtin.integer"
    %tiles = irdl.base "#builtin.array"
    irdl.attributes { "depth" = %depth, "tiles" = %tiles }
    irdl.results(buffer: %buffer)
  }

  irdl.operation @write attributes {
    summary = "The math warps write a tile to the next place of a buffer, each what it holds: axis i is axis `axes[i]` of the memory.",
    reads = [], writes = []
  } {
    %buffer = irdl.base @warp::@places
    %tensor = irdl.base "!builtin.tensor"
    %memref = irdl.base "!builtin.memref"
    %axes = irdl.base "#builtin.array"
    irdl.attributes { "axes" = %axes }
    irdl.operands(buffer: %buffer, tile: %tensor)
    irdl.results(memory: %memref)
  }

  irdl.operation @show attributes {
    summary = "Products that begin once the math warps have met see what each of these threads wrote before.",
    reads = [], writes = []
  } {}

  irdl.operation @join_warps attributes {
    summary = "All math warps that do this program have come here.", reads = [], writes = []
  } {}

  irdl.operation @release attributes {
    summary = "Frees a slot.", reads = [], writes = []
  } {
    %ring = irdl.base @warp::@ring
    %place = irdl.base @warp::@place
    irdl.operands(channel: %ring, slot: %place)
  }

  irdl.operation @dot attributes {
    summary = "Begins to add a product of factors in shared memory, along the axes `a_k` and `b_k` of theirs; the first may be a tile in registers, and then shorter along k: it meets the second one from `k_from` on, if that is said. `elements` are the types of the factors and sums in the language.",
    reads = [], writes = []
  } {
    %sums = irdl.base "!builtin.tensor"
    %a = irdl.any
    %b = irdl.base "!builtin.memref"
    %a_k = irdl.base "#builtin.integer"
    %b_k = irdl.base "#builtin.integer"
    %elements = irdl.base "#builtin.array"
    irdl.attributes { "a_k" = %a_k, "b_k" = %b_k, "elements" = %elements }
    irdl.operands(a: %a, b: %b, sums: %sums)
    irdl.results(begun: %sums)
  }

  irdl.operation @drain attributes {
    summary = "Waits until no more than `pending` of the products that were begun last are under way.",
    reads = [], writes = []
  } {
    %pending = irdl.base "#builtin.integer"
    irdl.attributes { "pending" = %pending }
  }

  irdl.operation @wait attributes {
    summary = "The accumulator, once at most `pending` of the most recently issued products are in flight.",
    reads = [], writes = []
  } {
    %pending = irdl.base "#builtin.integer"
    irdl.attributes { "pending" = %pending }
    %sums = irdl.base "!builtin.tensor"
    irdl.operands(begun: %sums)
    irdl.results(sums: %sums)
  }

  irdl.operation @alloc attributes {
    summary = "The address of `bytes` of the block's shared memory, at `offset` once that is planned; with `by_warp`, no warp touches what another one does. With an `alignment` it is a ring of slots, with `throughout` to the end; where it is `sent`, hardware copies from it.",
    reads = [], writes = []
  } {
    %pointer = irdl.is !llvm.ptr<3>
    %bytes = irdl.base "#builtin.integer"
    irdl.attributes { "bytes" = %bytes }
    irdl.results(pointer: %pointer)
  }
}
