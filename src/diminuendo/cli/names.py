"""Names that help texts list, written down once more, because the tables they come from take long to load.

A test compares them with the tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from diminuendo.types import FeedbackKind

STREAMS = ("msweb", "msweb-drift", "taste-groups", "adversary")
"""streams.builtin.BUILTIN"""

FROM_ROWS = ("noisy-or", "best-match", "concave")
"""streams.builtin.FROM_ROWS"""

FEEDBACKS: tuple[FeedbackKind, ...] = ("full", "bandit", "click")
"""types.FEEDBACKS"""

CLICKS = ("cascade", "independent")
"""streams.clicks.MODELS"""
