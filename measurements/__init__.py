"""Measurements: every measured table and picture of README and docs, from commands that anybody can repeat."""
