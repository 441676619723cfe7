"""What a program must know of the machine that it will run on."""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
# From this PTX ISA on, kernels have 32764 bytes of parameters and not 4096 (PTX ISA, "Kernel
# Function Parameters"). Code for no target is written in an older one.
PARAMETERS_PTX = 81


@dataclass(frozen=True)
class Rates:
    """The most that one multiprocessor does in a cycle.

    Units:    `product_bytes` is how many products are summed by the tensor cores, times the bytes
              of an element; `shared_bytes` go to or from shared memory; `l2_bytes` come from L2,
              in lines of `line_bytes`; `lanes` are instructions of threads, which `schedulers`
              give out, a warp at a time. From memory `memory_bytes` come, to all of them together

    What costs are estimated by beside that: of their peak, tensor cores keep up
    `sustained_percent`, as copies do, and `fragment_percent` with factors that threads hold; cycles
    until a load is there, until a copy from L2 has filled a slot that became free, and one from
    memory, until a register that was spilled is there, until the threads of a block have exchanged
    something, and until so many blocks that do a program together have met, twice; those in which a
    thread begins a product.
    """

    product_bytes: int
    shared_bytes: int
    l2_bytes: int
    memory_bytes: int
    line_bytes: int = 128
    lanes: int = 128
    schedulers: int = 4
    sustained_percent: int = 90
    fragment_percent: int = 60
    load_latency: int = 800
    copy_latency: int = 700
    memory_latency: int = 1900
    spill_latency: int = 32
    exchange_latency: int = 150
    issue_cycles: int = 32
    meetings: tuple[tuple[int, int], ...] = ((2, 4000), (4, 5000), (8, 7500))

    def meeting(self, blocks: int) -> int:
        """Cycles that blocks of a program take to begin together and to hand over sums."""
        return dict(self.meetings)[blocks]


@dataclass(frozen=True)
class Roles:
    """What schedules are planned by in which some warps copy and others multiply.

    Threads with one number in all warpgroups share `registers`: one that loads has
    `loader_registers`, or where there are more than `few_rings` `loader_registers_of_many`, and
    those that compute have the rest. A math thread has room for `held_registers` of sums and of
    factors that it computes; beside them are addresses, and what follows the products. A ring has
    `depth` slots at the most, for more hide nothing, or `depth_of_several` where a block does
    several programs. Math warpgroups do programs by turns where each thread has `sums_by_turns` or
    more. Sums and what is loaded before products for use after them take up to `ahead_registers`.
    Blocks copy alone what is up to `l2_bytes`, for up to then L2 keeps up; and where turns are
    shorter than `cluster_cycles`, for to wait for each other so often costs more. `rows_together`
    rows of programs are walked at a time, or of clusters.

    Units:    registers are those of a thread; `l2_bytes` a cycle of the tensor cores, whose cycles
              turns are told in; `rest_bytes` of shared memory, left for barriers, reductions and
              what alignment costs
    """

    math_groups: int
    registers: int
    few_rings: int
    loader_registers: int
    loader_registers_of_many: int
    held_registers: int
    ahead_registers: int
    depth: int
    depth_of_several: int
    sums_by_turns: int
    l2_bytes: int
    cluster_cycles: int
    rows_together: int
    rest_bytes: int


@dataclass(frozen=True)
class Stages:
    """What rings are planned by that all threads of a block fill.

    More than `depth` slots hide nothing. Beside sums, a thread takes `other_registers`, and
    `ahead_registers` for what it reads a turn ahead. With more than `few_blocks` on a
    multiprocessor, the assembler weighs registers against their number well.

    Units:    bytes of shared memory, left for reductions and conversions
    """

    depth: int = 4
    rest_bytes: int = 4 * KIB
    other_registers: int = 48
    ahead_registers: int = 32
    few_blocks: int = 2


@dataclass(frozen=True)
class Target:
    """Facts of one target, from the manuals; each table names its source.

    Units:    `*_bytes` are bytes; registers are 32-bit
    """

    name: str  # as users write it and as LLVM and ptxas know the chip: "sm_90a"
    capability: tuple[int, int]
    # The PTX ISA that code is written in, as LLVM's feature says it: 80 is `+ptx80`.
    ptx_version: int
    smem_per_sm_bytes: int
    smem_per_block_bytes: int  # the most that a kernel may opt in to
    warps_per_sm: int
    blocks_per_sm: int
    multiprocessors: int  # of the largest card
    cluster_blocks: int  # the largest portable cluster; 1 where there are no clusters
    # The same on all of these families.
    smem_static_bytes: int = 48 * KIB  # what a kernel has without opting in
    registers_per_sm: int = 64 * KIB
    registers_per_thread: int = 255
    threads_per_block: int = 1024
    threads_per_warp: int = 32
    warps_per_group: int = 4
    # What registers and shared memory are given out by, and what a block takes for itself.
    register_unit: int = 256  # to a warp
    warp_schedulers: int = 4  # each with a part of the registers of its own
    smem_unit_bytes: int = 128
    smem_of_block_bytes: int = KIB
    smem_banks: int = 32
    smem_bank_bytes: int = 4
    l2_line_bytes: int = 128
    access_bytes: int = 16  # the widest load or store of one thread
    parameter_bytes: int = 32764  # from the first parameter to past the last (PARAMETERS_PTX)
    grid_limit: tuple[int, int, int] = (2**31 - 1, 65535, 65535)
    rates: Rates | None = None  # where schedules are planned
    roles: Roles | None = None  # where warpgroups multiply what lies in shared memory
    stages: Stages = Stages()
    # The table that the facts come from, if it is not this target's own.
    described_as: str | None = None

    @property
    def has_async_products(self) -> bool:
        """Whether warpgroups multiply what lies in shared memory (PTX ISA, "wgmma")."""
        return self.roles is not None

    @property
    def has_early_starts(self) -> bool:
        """Whether kernels can wait for those before them (PTX ISA, "griddepcontrol": sm_90)."""
        return self.capability >= (9, 0)

    @property
    def is_architecture_specific(self) -> bool:
        """Whether the code runs on this architecture only (`sm_90a`)."""
        return self.name.endswith("a")

    def free_smem_bytes(self, warps: int) -> int:
        """The shared memory of a block of so many warps that costs no occupancy.

        As many blocks as the warps allow are then resident; each takes 1 KiB more than it asks
        for (CUDA C++ Programming Guide, "Shared Memory" of compute capability 8.x and 9.0).
        """
        blocks = max(1, min(self.blocks_per_sm, self.warps_per_sm // warps))
        return max(0, self.smem_per_sm_bytes // blocks - self.smem_of_block_bytes)

    @property
    def features(self) -> str:
        """The `features` of `#nvvm.target`."""
        return f"+ptx{self.ptx_version}"

    @property
    def number(self) -> int:
        """The capability as names have it: 90 for 9.0."""
        return self.capability[0] * 10 + self.capability[1]
