"""Figures of what a simulation found."""

from diminuendo._extras import extra

with extra("simulate"):
    import matplotlib as mpl

mpl.use("Agg")  # files only; no screen is needed
