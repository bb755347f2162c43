"""Ours, the peers and the floor, in one run: `python -m benchmarks` (or `make bench`)."""
