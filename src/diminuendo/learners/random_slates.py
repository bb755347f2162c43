"""Random: k distinct items, uniformly, for all users. The floor that every learner must clear.

Guarantee  slates are drawn before and without anything users say, so they are (0, 0)-private.
"""

from __future__ import annotations

from diminuendo.learners.base.entry import Advice, Entry
from diminuendo.learners.base.feedback import Anything
from diminuendo.learners.base.feedback_window import Patient
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.base.items import ItemAvailability
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.policy import MenuPolicy
from diminuendo.offline.rules import SlateRules
from diminuendo.privacy.budget import Guarantee, perfect_privacy
from diminuendo.randomness.sources import RandomSource
from diminuendo.streams.users import Users
from diminuendo.types import Items


class RandomPolicy(MenuPolicy):
    """One menu for ever, and nothing is learned."""

    reader = Anything()

    def __init__(self, frame: Frame, rules: SlateRules | None = None) -> None:
        self.frame = frame
        self._chooser = (
            ItemAvailability(frame.n_items, frame.slots, rules=rules).random_menu(0, None, 0).chooser()
        )

    @property
    def guarantee(self) -> Guarantee:
        """Perfect: slates do not depend on any user."""
        return perfect_privacy("slates are drawn without looking at feedback", self.frame.rng.secure)

    def learn(self, place: int, answer: None) -> None:
        """Nothing is learned."""

    def replay(self, users: Users, slates: Items, done: int) -> int:
        """Random slates for all users."""
        return done + self.draw_rows(slates[done:])


def random_slates(
    n_items: int, slots: int, *, rng: RandomSource | None = None, feedback_window: Patient = None
) -> Learner:
    """Return the learner that shows k distinct items, uniformly at random, to every user: the floor to clear.

    Parameters
    ----------
    n_items : int
        Number of items.
    slots : int
        Number of items in a slate.
    rng : RandomSource, optional
        Randomness. By default SystemSource.
    feedback_window : FeedbackWindow or int, optional
        Feedback window.

    Returns
    -------
    Learner

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    Notes
    -----
    Slates do not depend on any user: (0, 0)-DP. The propensity of each decision is (n_items - k)! / n_items!.

    Examples
    --------
    >>> import diminuendo as dim
    >>> dim.RandomSlates(5, 2, rng=dim.SeededSource(1)).choose().propensity
    0.05
    """
    return Learner(RandomPolicy(Frame("random", n_items, slots, rng=rng, feedback_window=feedback_window)))


RandomSlates = Entry(
    "random",
    random_slates,
    reads=Anything.kinds,
    summary="k distinct items at random; learns nothing; the floor to clear",
    advice=Advice("perfect", "-", "nothing", "as the floor that learners must clear"),
    private=False,
)
