"""Kernels and pipelines launched from Rust, by libraries that were compiled elsewhere: the tests of
those launched from C, with other functions."""

from __future__ import annotations

from functools import cache

import pytest
from cubins import CUBINS, FOLDER
from host_driver import DRY_RUN
from test_header_pipelines import (  # noqa: F401  (they run here with other functions)
    pipeline,
    streams,
    test_a_graph_takes_other_tensors,
    test_an_mlp_has_the_bits_of_the_runtime_each_way,
    test_chains_and_diamonds_are_exact_each_way,
    test_launches_in_clusters_and_of_split_sums,
    test_turned_tensors_and_computed_sizes,
)
from test_headers import (  # noqa: F401
    test_a_broken_contract_launches_nothing,
    test_bits_are_those_of_the_runtime,
    test_results_and_guards,
)

from tests.emit.pipeline_calling import PipelineFunctions
from tilec.emit.sets import launch_sets

pytestmark = pytest.mark.skipif(DRY_RUN, reason="Rust launches by the driver itself")
LIBRARIES = CUBINS / FOLDER / "rust"


class FromRust(PipelineFunctions):
    """The functions of a module in Rust, from a library that is there."""

    def __init__(self, module, path):
        self.sets = {one.name: one for one in launch_sets(module.manifest)}
        self.open(path)

    def destroy(self, graph):
        from cuda.core import Device

        Device().sync()  # Rust gives no graph back of which something is under way
        super().destroy(graph)


@pytest.fixture(scope="session")
def functions():
    """The functions of a module's library; it is skipped where there is none for its target."""

    @cache
    def opened(module):
        name = module.manifest.source.file.rpartition("/")[2].removesuffix(".tile")
        path = LIBRARIES / f"{name}.{module.manifest.target}.so"
        if not path.exists():
            pytest.skip(f"{path.name} was not built: there was no rustc")
        return FromRust(module, path)

    return opened
