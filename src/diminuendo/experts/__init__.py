"""Experts: each chooses one slot, and sees gains, never an objective."""

from diminuendo.experts.hedge import Hedge

__all__ = ["Hedge"]
