"""Pipelines: executed at compile time, launch by launch, into what a plan is made of."""
