"""What the proofs say of a kernel, in the words of the adversary."""

from __future__ import annotations

from collections.abc import Mapping

from mlir import ir

from tests.proofs.adversary import Refusal, Said, Verdict, Witness
from tests.proofs.observed import Launch, place_of
from tilec.ir.walk import functions
from tilec.proofs.bounds import Verdict as Proved
from tilec.proofs.bounds import is_never_inside
from tilec.proofs.proof import Proof
from tilec.proofs.races import Race
from tilec.recursion import deep_recursion
from tilec.source import SourceFile

# What an extent or scalar is that a witness does not name.
_ANY = 1


def verify(module: ir.Module, sources: Mapping[str, SourceFile]) -> Said:
    """Verdicts and refusals of the one kernel of a module, whose helpers are inlined."""
    [function] = functions(module)
    proof = Proof(function)
    with deep_recursion():
        refusals = [_refusal(race, proof) for race in proof.races]
        verdicts = {}
        for bounds in proof.bounds:
            access = bounds.access
            place = place_of(access.op.location)
            verdicts[place] = Verdict(bounds.verdict.value)
            if access.starts is not None and is_never_inside(proof.reasoning, access):
                verdicts[place] = Verdict.NEVER_INSIDE
                refusals.append(Refusal("E0601", place[0]))
        conditions = {
            place_of(bounds.access.op.location): tuple(map(proof.expression_of, bounds.conditions))
            for bounds in proof.bounds
            if bounds.verdict is Proved.LAUNCH_CHECKED
        }
    return Said(verdicts, refusals, conditions)


def _refusal(race: Race, proof: Proof) -> Refusal:
    fault = race.fault
    code = "E0501" if fault.writes else "E0502"
    return Refusal(code, place_of(fault.op.location)[0], _witness(race, proof))


def _witness(race: Race, proof: Proof) -> Witness | None:
    found = race.witness
    if found is None:
        return None
    dims = {name: found.sizes.get(name, _ANY) for name in proof.reasoning.dims}
    scalars = {name: found.scalars.get(name, _ANY) for name in proof.reasoning.scalars}
    axes = list(proof.reasoning.ids)
    one, other = (_program(dict(zip(axes, ids, strict=True))) for ids in found.programs)
    return Witness(Launch(dims, scalars), (one, other), race.tensor, found.element)


def _program(ids: Mapping[int, int]) -> tuple[int, ...]:
    return tuple(ids.get(axis, 0) for axis in range(max(ids, default=-1) + 1))
