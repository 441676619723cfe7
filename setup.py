"""The C path of launches, built where there is a C compiler: the runtime does without it, slower.

All else about the package is in pyproject.toml.
"""

from __future__ import annotations

import sysconfig
from pathlib import Path
from zlib import crc32

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel

SOURCE = Path("src/tilec/runtime/hot_path.c")
HOT_PATH = Extension(
    "tilec.runtime._hot_path",
    [str(SOURCE)],
    define_macros=[("SOURCE", f"{crc32(SOURCE.read_bytes())}ul")],
    py_limited_api=True,  # one build is for Python 3.10 and all later ones
    optional=True,
)


class Wheel(bdist_wheel):
    """Is for every machine and Python where nothing was compiled for this one."""

    def run(self) -> None:
        self.run_command("build")
        outputs = self.get_finalized_command("build_ext").get_outputs()
        if not any(Path(one).exists() for one in outputs):
            self.distribution.ext_modules = None
            self.root_is_pure = True
        super().run()


# Python without its lock has no stable ABI before 3.15, and the C path counts on the lock.
if sysconfig.get_config_var("Py_GIL_DISABLED"):
    setup()
else:
    setup(
        ext_modules=[HOT_PATH],
        cmdclass={"bdist_wheel": Wheel},
        options={"bdist_wheel": {"py_limited_api": "cp310"}},
    )
