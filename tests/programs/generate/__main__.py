"""Writes the generated programs.

python -m tests.programs.generate build/gpu-tests
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.programs.generate.write import programs


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, program in programs().items():
        (folder / f"{name}.tile").write_text(program.text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
