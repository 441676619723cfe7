"""Targets: hardware facts as tables with their source, and where the tools are."""
