"""What messages of launchers call things, in the words of `tilec.runtime`."""

from __future__ import annotations

from tilec.artifact.asked import asked
from tilec.artifact.expression import Expression, text_of
from tilec.artifact.manifest import Variant
from tilec.artifact.pipeline import PipelineLaunch


def required(text: str, expression: Expression) -> str:
    """What messages call a `requires!`."""
    built = text_of(expression)
    return f"`requires!({text})`" + ("" if built == text else f" (here `{built}`)")


def asks(variant: Variant) -> str:
    """The preconditions of a variant in words."""
    wanted = [asked(p) for p in variant.preconditions]
    wanted += [f"a tensor map of `{m.param}`" for m in variant.tensor_maps]
    return ", ".join(wanted)


def in_words(launch: PipelineLaunch) -> str:
    """As messages of `tilec.runtime` have it."""
    given = ", ".join(f"{a.parameter} = {a.tensor}" for a in launch.arguments if a.tensor)
    return f"the launch of `{launch.kernel}` in {launch.file}:{launch.line} ({given})"
