"""What is asked of Nsight Compute, by the names that results have."""

from __future__ import annotations

import subprocess

_STALLS = (
    "long_scoreboard", "short_scoreboard", "barrier", "wait", "lg_throttle", "mio_throttle",
    "math_pipe_throttle", "not_selected", "no_instruction", "membar", "drain",
    "imc_miss", "dispatch_stall", "sleeping", "branch_resolving", "gmma",
)  # fmt: skip
_OF_LAUNCHES = {
    "registers": "launch__registers_per_thread",
    "threads": "launch__block_size",
    "blocks": "launch__grid_size",
    "waves": "launch__waves_per_multiprocessor",
}
_METRICS = {
    "us": "gpu__time_duration.sum",
    "sm_ghz": "sm__cycles_elapsed.avg.per_second",
    "read_mb": "dram__bytes_read.sum",
    "written_mb": "dram__bytes_write.sum",
    "dram_percent": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "l2_percent": "lts__t_sectors.avg.pct_of_peak_sustained_elapsed",
    "l2_busiest_percent": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "l2_to_sm_percent": "lts__lts2xbar_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "l2_hit_percent": "lts__t_sector_hit_rate.pct",
    "l2_mb": "lts__t_bytes.sum",
    "from_l2_mb": "l1tex__m_xbar2l1tex_read_bytes.sum",
    "l1_percent": "l1tex__throughput.avg.pct_of_peak_sustained_active",
    "shared_percent": "l1tex__data_pipe_lsu_wavefronts_mem_shared.avg.pct_of_peak_sustained_active",
    "tensor_percent": "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "tensor_active_percent": "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    "tensor_instructions": "sm__inst_executed_pipe_tensor.sum",
    "local_loads_mb": "l1tex__t_bytes_pipe_lsu_mem_local_op_ld.sum",
    "local_stores_mb": "l1tex__t_bytes_pipe_lsu_mem_local_op_st.sum",
    "issue_percent": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "warps_percent": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "sm_active_percent": "sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
    "instructions_per_warp": "smsp__average_inst_executed_per_warp.ratio",
    **{
        f"stall_{name}": f"smsp__average_warps_issue_stalled_{name}_per_issue_active.ratio"
        for name in _STALLS
    },
}
SAMPLES = "group:smsp__pcsamp_warp_stall_reasons"


def available_metrics() -> dict[str, str]:
    """Those that this card has: their names differ from one to the next."""
    answer = subprocess.run(["ncu", "--query-metrics"], capture_output=True, text=True)
    known = {line.split()[0] for line in answer.stdout.splitlines() if line.strip()}
    return {
        **{name: one for name, one in _METRICS.items() if one.partition(".")[0] in known},
        **_OF_LAUNCHES,
    }
