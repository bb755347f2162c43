"""Figures of what a simulation found."""

from diminuendo._extras import extra

# Figures are made without pyplot, so they need no screen, and a notebook keeps its backend.
with extra("simulate"):
    import matplotlib as matplotlib
