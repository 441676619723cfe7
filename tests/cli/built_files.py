"""What commands leave in a folder."""

from __future__ import annotations

from pathlib import Path


def files_in(folder: Path) -> list[str]:
    """Every file below a folder, hidden ones too."""
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
