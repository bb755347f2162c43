"""Privacy: what is asked, what is proved, what is spent."""

from diminuendo.privacy.budget import Guarantee

__all__ = ["Guarantee"]
