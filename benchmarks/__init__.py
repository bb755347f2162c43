"""Ours, the peers and the floor, in one run."""
