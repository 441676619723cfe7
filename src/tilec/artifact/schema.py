"""The published JSON schema of the manifest; `python -m tilec.artifact.schema` prints it."""

from __future__ import annotations

import json

from tilec.artifact.manifest import KEY, SCHEMA_VERSION, Manifest
from tilec.artifact.structure import schema_of


def manifest_schema() -> dict[str, object]:
    """The JSON schema, draft 2020-12, that every manifest of this version meets."""
    body = schema_of(Manifest)
    properties, required = body["properties"], body["required"]
    assert isinstance(properties, dict) and isinstance(required, list), "a manifest is an object"
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Manifest of a cubin built by tilec",
        **body,
        "properties": {KEY: {"const": SCHEMA_VERSION}, **properties},
        "required": [KEY, *required],
    }


def schema_text() -> str:
    """The text of `manifest.schema.json`."""
    return json.dumps(manifest_schema(), indent=2) + "\n"


if __name__ == "__main__":
    print(schema_text(), end="")
