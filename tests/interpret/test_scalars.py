"""Scalars on the CPU are those that launchers take, with the same bits."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from tests.frontend.front_end import refusals
from tilec.interpret.contract import DTYPES, BrokenContract, Parameter, bind
from tilec.runtime.errors import ContractError
from tilec.runtime.scalars import scalar_of

# What each type takes, and as what; what it does not. By the definition of the types.
INTEGERS = {
    "usize": (0, 2**63 - 1),
    **{f"i{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{f"u{bits}": (0, 2**bits - 1) for bits in (8, 16, 32, 64)},
}
TAKEN = [(element, end, end) for element, ends in INTEGERS.items() for end in ends]
TAKEN += [
    ("bool", True, True),
    ("f16", 65519.9, 65504.0),
    ("f16", 2.0**-25, 0.0),  # half of the least number, ties to even
    ("bf16", 3.3961775e38, 2.0**127 * (2 - 2.0**-7)),
    # Between two numbers and past the middle by less than f32 tells: rounded once.
    ("bf16", 1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-7),
    ("bf16", 1 + 2.0**-8, 1.0),
    ("f32", 2**60 + 2**36 + 1, 2.0**60),
    ("f32", 3.4028235e38, 2.0**127 * (2 - 2.0**-23)),
    ("f64", 10**308, 1e308),
    *((element, math.inf, math.inf) for element in ("f16", "bf16", "f32", "f64")),
    *((element, -math.inf, -math.inf) for element in ("f16", "bf16", "f32", "f64")),
    ("f16", np.float64(0.1), float(np.float16(0.1))),
]
REFUSED = [(e, low - 1) for e, (low, _) in INTEGERS.items()]
REFUSED += [(e, high + 1) for e, (_, high) in INTEGERS.items()]
REFUSED += [(e, given) for e in INTEGERS for given in (True, 1.0, math.nan, math.inf, "1")]
REFUSED += [("bool", given) for given in (0, 1, 1.0, math.nan)]
REFUSED += [("f16", 65520.0), ("f16", -1e6), ("bf16", 3.3961776e38), ("f32", 3.4028236e38)]
REFUSED += [("f64", 10**309), ("f32", 10**400), ("f16", True), ("f32", "1"), ("f32", 1j)]


def on_cpu(element: str, given: object) -> np.ndarray:
    arrays, _ = bind((Parameter("s", element, None),), {"s": given})
    return arrays["s"]


@pytest.mark.parametrize(("element", "given", "wanted"), TAKEN, ids=str)
def test_a_number_of_the_type_is_taken(element: str, given: object, wanted: object) -> None:
    passed = np.asarray(scalar_of("s", element, given).passed)
    held = on_cpu(element, given)
    exact = np.asarray(wanted).astype(DTYPES[element])
    assert held.tobytes() == passed.tobytes() == exact.tobytes()


@pytest.mark.parametrize("element", ["f16", "bf16", "f32", "f64"])
def test_nan_is_a_number_of_every_float(element: str) -> None:
    assert math.isnan(float(on_cpu(element, math.nan)))
    assert math.isnan(scalar_of("s", element, math.nan).value)
    assert math.isnan(float(on_cpu(element, ml_dtypes.bfloat16("nan"))))


@pytest.mark.parametrize(("element", "given"), REFUSED, ids=str)
def test_any_other_is_refused_in_the_same_words(element: str, given: object) -> None:
    with pytest.raises(ContractError) as launched:
        scalar_of("s", element, given)
    with pytest.raises(BrokenContract) as executed:
        on_cpu(element, given)
    assert str(executed.value) == str(launched.value)


@pytest.mark.parametrize("element", ["f8e4m3", "f8e5m2", "tf32"])
def test_a_type_that_computes_nothing_is_none_of_scalar_parameters(element: str) -> None:
    body = "y.store(Tile::<f32, 16>::zeros());"
    part = "y: Part<&mut Tensor<f32, N>, 16>"
    assert refusals(f"#[kernel]\npub fn k<N: Dim>({part}, a: {element}) {{ {body} }}") == [
        ("E0203", 2)
    ]
    generic = f"#[kernel]\n#[instance(T = {element})]\npub fn k<T: Any, N: Dim>({part}, a: T)"
    assert refusals(f"{generic} {{ {body} }}")
