"""Manifests of older schema versions, as this version would have written them."""

from __future__ import annotations

import json
from typing import Any

from tilec.artifact.manifest import KEY, SCHEMA_VERSION, Manifest, from_json

OLDEST = 7


def from_any_json(text: str | bytes) -> tuple[Manifest, int]:
    """The manifest, and the schema version of the text: OLDEST to SCHEMA_VERSION.

    Raises:   ManifestError
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return from_json(text), SCHEMA_VERSION  # which says what is wrong
    version = document.get(KEY) if isinstance(document, dict) else None
    if version == 7:
        _to_8(document)
    if version in (7, 8):
        _to_9(document)
    if version in (7, 8, 9):
        _to_10(document)
    return from_json(json.dumps(document)), version if isinstance(version, int) else SCHEMA_VERSION


def _to_8(document: dict[str, Any]) -> None:
    """There were no pipelines, and no variant started early."""
    document[KEY] = 8
    document.setdefault("pipelines", [])
    kernels = document.get("kernels")
    for kernel in kernels if isinstance(kernels, list) else []:
        variants = kernel.get("variants") if isinstance(kernel, dict) else None
        for variant in variants if isinstance(variants, list) else []:
            if isinstance(variant, dict):
                variant.setdefault("starts_early", False)


def _to_9(document: dict[str, Any]) -> None:
    """Every tensor counted as read and written as a whole."""
    document[KEY] = 9
    kernels = document.get("kernels")
    for kernel in kernels if isinstance(kernels, list) else []:
        if isinstance(kernel, dict):
            kernel.setdefault("touched", [])


def _to_10(document: dict[str, Any]) -> None:
    """Nothing was said of software pipelines but the choice."""
    document[KEY] = 10
    kernels = document.get("kernels")
    for kernel in kernels if isinstance(kernels, list) else []:
        variants = kernel.get("variants") if isinstance(kernel, dict) else None
        for variant in variants if isinstance(variants, list) else []:
            lowering = variant.get("lowering") if isinstance(variant, dict) else None
            schedule = lowering.get("schedule") if isinstance(lowering, dict) else None
            if isinstance(schedule, dict):
                schedule.setdefault("pipelines", [])
