"""Randomness: coins, and exact ways to spend them."""

from diminuendo.randomness.exponential import select
from diminuendo.randomness.sources import RandomSource, SeededSource, SystemSource
from diminuendo.randomness.words import PublicSource, SecretRandomness

__all__ = ["PublicSource", "RandomSource", "SecretRandomness", "SeededSource", "SystemSource", "select"]
