"""Randomness: coins, and exact ways to spend them."""

from diminuendo.randomness.coins import Coins, SeededCoins, SystemCoins

__all__ = ["Coins", "SeededCoins", "SystemCoins"]
