"""The language as data: `tile.lark`."""
