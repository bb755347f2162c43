"""Figures of what a simulation found."""
