"""LLVM and NVVM dialect, or anything that lowers to them in a known way, to PTX text."""

from __future__ import annotations

from mlir import ir
from mlir.passmanager import PassManager

from tilec.ir.dialects import gpu, llvm

# convert-gpu-to-nvvm calls libdevice for `math`; convert-nvvm-to-llvm is required even where it
# seems to do nothing: without it predicates are dropped in silence. What is simplified first need
# not be converted; blocks, and what is left at the end, LLVM simplifies in less time.
_TO_LLVM = """builtin.module(
  gpu.module(
    canonicalize{region-simplify=disabled}, cse, convert-scf-to-cf, convert-gpu-to-nvvm,
    convert-math-to-llvm, convert-arith-to-llvm, convert-index-to-llvm, convert-vector-to-llvm),
  convert-cf-to-llvm,
  gpu.module(convert-nvvm-to-llvm, reconcile-unrealized-casts))"""

# Line directives only: full line tables put `debug` into the PTX target line, and ptxas then
# optimises nothing.
_TO_PTX = """builtin.module(
  ensure-debug-info-scope-on-llvm-func{emission-kind=DebugDirectivesOnly},
  gpu-module-to-binary{format=isa})"""


def lower_to_llvm(module: ir.Module) -> None:
    """Rewrite every `gpu.module` into the LLVM dialect, in place."""
    passes = PassManager.parse(_TO_LLVM)
    # Once at the end and not after each pass, which is a third of the time they take.
    passes.enable_verifier(False)
    passes.run(module.operation)
    assert module.operation.verify(), "passes make valid operations"


def llvm_ir_of(module: ir.Module) -> str:
    """The LLVM IR of the one `gpu.module` in `module`, before libdevice and LLVM's own passes."""
    [inner] = module.body.operations
    with inner.location:
        whole = ir.Module.create()
        for op in inner.regions[0].blocks[0].operations:
            op.operation.clone(ip=ir.InsertionPoint(whole.body))
        return str(llvm.translate_module_to_llvmir(whole.operation))


def ptx_of(module: ir.Module) -> str:
    """The PTX of the one `gpu.module` in `module`, which is in the LLVM dialect, and replaced."""
    PassManager.parse(_TO_PTX).run(module.operation)
    [binary] = module.body.operations
    [compiled] = ir.ArrayAttr(binary.operation.attributes["objects"])
    text: bytes = gpu.ObjectAttr(compiled).object
    return text.rstrip(b"\0").decode()
