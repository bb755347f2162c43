"""Randomness: coins, and exact ways to spend them."""

from diminuendo.randomness.coins import Coins, PublicCoins, SecretRandomness, SeededCoins, SystemCoins
from diminuendo.randomness.exponential import select

__all__ = ["Coins", "PublicCoins", "SecretRandomness", "SeededCoins", "SystemCoins", "select"]
