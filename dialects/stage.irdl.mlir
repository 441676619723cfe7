// The stage dialect: loops whose tiles are copied to shared memory some turns ahead, by the threads that use them.
//
// A *ring* is `depth` slots in shared memory, each of which holds a tile of every type in `tiles` (memrefs, whose last
// axis is the contiguous one). Turn k of its loop (the one with its number as attribute `stage.ring`) reads slot
// k % depth, and begins to fill slot (k + depth - 1) % depth, which the turn before has read. Before the loop, what the
// first turns read is begun. A ring that `rotates` is read by one product of its loop, which makes groups and waits itself:
// before its last step, so that it can read what the next turn multiplies first.
// `begin` fills a tile of a slot if it is `present`; what lies outside of the tensor is zero. `fill` says by what: copies
// that go on by themselves ("cp.async"), or registers of the threads ("registers"). It is done with, at the latest, where
// `commit` stands; of copies, `commit` makes a group, and `arrived` waits until no more than `pending` of the latest
// groups are under way; behind a loop with `stage.waits`, none is. That all threads have done so is for barriers to say, which are derived (`tilec.shared_memory`).
irdl.dialect @stage {
  irdl.type @ring {}

  irdl.operation @ring_of attributes {
    summary = "A ring of `depth` slots for tiles of these memref types, number `number` of the function.",
    reads = [], writes = []
  } {
    %ring = irdl.base @stage::@ring
    %depth = irdl.base "#builtin.integer"
    %number = irdl.base "#builtin.integer"
    %tiles = irdl.base "#builtin.array"
    %fill = irdl.base "#builtin.string"
    irdl.attributes { "depth" = %depth, "number" = %number, "tiles" = %tiles, "fill" = %fill }
    irdl.results(ring: %ring)
  }

  irdl.operation @begin attributes {
    summary = "Begins to fill tile number `tile` of a slot from `indices`, counted in `unit`s, if `present`; it is read `ahead` turns later.",
    reads = [], writes = []
  } {
    %ring = irdl.base @stage::@ring
    %index = irdl.is index
    %bit = irdl.is i1
    %view = irdl.base "!builtin.memref"
    %tile = irdl.base "#builtin.integer"
    %ahead = irdl.base "#builtin.integer"
    %unit = irdl.base "#builtin.string"
    %shape = irdl.base "#builtin.array"
    %axes = irdl.base "#builtin.array"
    %bounds = irdl.base "#builtin.array"
    irdl.attributes {
      "tile" = %tile, "ahead" = %ahead, "unit" = %unit, "shape" = %shape, "axes" = %axes, "bounds" = %bounds
    }
    irdl.operands(ring: %ring, slot: %index, present: %bit, view: %view, indices: variadic %index)
  }

  irdl.operation @commit attributes {
    summary = "What was begun since the last one is a group.", reads = [], writes = []
  } {
    %ring = irdl.base @stage::@ring
    irdl.operands(ring: %ring)
  }

  irdl.operation @arrived attributes {
    summary = "Waits until no more than `pending` of the groups that were made last are under way.",
    reads = [], writes = []
  } {
    %ring = irdl.base @stage::@ring
    %pending = irdl.base "#builtin.integer"
    irdl.attributes { "pending" = %pending }
    irdl.operands(ring: %ring)
  }

  irdl.operation @tile attributes {
    summary = "Tile number `tile` of the slot of this turn; axis i is axis `axes[i]` of memory, or of extent 1 (-1).",
    reads = [], writes = []
  } {
    %ring = irdl.base @stage::@ring
    %index = irdl.is index
    %tensor = irdl.base "!builtin.tensor"
    %tile = irdl.base "#builtin.integer"
    %axes = irdl.base "#builtin.array"
    irdl.attributes { "tile" = %tile, "axes" = %axes }
    irdl.operands(ring: %ring, slot: %index)
    irdl.results(tile: %tensor)
  }
}
