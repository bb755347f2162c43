"""Randomness: coins, and exact ways to spend them."""

from diminuendo.randomness.coins import Coins, SeededCoins, SystemCoins
from diminuendo.randomness.exponential import select
from diminuendo.randomness.words import PublicCoins, SecretRandomness

__all__ = ["Coins", "PublicCoins", "SecretRandomness", "SeededCoins", "SystemCoins", "select"]
