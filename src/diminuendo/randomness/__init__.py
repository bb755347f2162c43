"""Randomness: sources of words, and exact samplers that use them."""

from diminuendo.randomness.exponential import select
from diminuendo.randomness.sources import RandomSource, SeededSource, SystemSource
from diminuendo.randomness.words import PublicSource, SecretRandomness

__all__ = ["PublicSource", "RandomSource", "SecretRandomness", "SeededSource", "SystemSource", "select"]
