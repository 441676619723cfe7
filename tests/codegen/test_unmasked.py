"""Where all is proved, the machine code is that of the twin that vouches for its accesses."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tilec.artifact.embed import extract
from tilec.artifact.manifest import from_json
from tilec.compilation import Options
from tilec.driver import compile_sources
from tilec.sources import read_sources
from tilec.target.toolchain import nvdisasm

LIBRARY = Path(__file__).parents[2] / "kernels"
# Kernels whose every access has an unchecked form, and what makes all of it inside.
WHOLE = {
    "rmsnorm_long": "N % B == 0",
    "layernorm_long": "N % B == 0",
    "softmax_long": "N % B == 0",
    "permute_heads": "M % BM == 0",
    "sum_all": "N % B == 0",
}


def sass(text: str, folder: Path) -> dict[str, str]:
    """The instructions of each variant by its symbol, without line information and names."""
    (folder / "kernel.tile").write_text(text, encoding="utf-8")
    compiled = compile_sources(read_sources(str(folder / "kernel.tile")), Options())
    assert not compiled.is_refused, compiled.diagnostics
    image = compiled.outputs["kernel.sm_90a.cubin"]
    manifest = from_json(extract(image) or b"")
    file = folder / "kernel.cubin"
    file.write_bytes(image)
    done = subprocess.run([nvdisasm(), "-c", file], capture_output=True, text=True, check=True)
    parts = re.split(r"\n\.text\.(\w+):\n", done.stdout)
    symbols = {v.symbol for kernel in manifest.kernels for v in kernel.variants}
    found = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert set(found) == symbols
    return {symbol: _instructions(body) for symbol, body in found.items()}


def _instructions(body: str) -> str:
    lines = "\n".join(re.findall(r"^ +/\*[0-9a-f]{4,}\*/ +(.*?;)", body, flags=re.MULTILINE))
    # Labels and functions of ptxas's own are numbered through the whole cubin.
    numbered = re.compile(r"\.L_x_\d+|_internal_\d+_")
    names = {name: f"N{i}" for i, name in enumerate(dict.fromkeys(numbered.findall(lines)))}
    return numbered.sub(lambda found: names[found[0]], lines)


def with_fact(text: str, fact: str) -> str:
    """The kernel with a precondition at the start of its body."""
    return re.sub(r"^\) \{$", f") {{\n    requires!({fact});", text, count=1, flags=re.MULTILINE)


def vouched(text: str) -> str:
    """The twin in `unsafe`: each access trusts its index."""
    unchecked = re.sub(r"\.(load|store)::<", r".\1_unchecked::<", text)
    head, _, body = unchecked.partition("\n) {\n")
    lines = body.rstrip().removesuffix("}")
    return f"{head}\n) {{\n    unsafe {{\n{lines}    }}\n}}\n"


@pytest.mark.parametrize("name", WHOLE)
def test_a_proved_kernel_is_its_unsafe_twin(name: str, tmp_path: Path) -> None:
    text = (LIBRARY / f"{name}.tile").read_text(encoding="utf-8")
    proved = with_fact(text, WHOLE[name])
    safe, twin = sass(proved, tmp_path), sass(vouched(proved), tmp_path)
    assert safe == twin
    assert all(code.count("LDG") and code.count("STG") for code in safe.values())
