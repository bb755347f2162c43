"""Hindsight: the best that could have been shown, had all users been known."""

from diminuendo.offline.by_type import HindsightByType, greedy_by_type, shuffled
from diminuendo.offline.exact import Bracket, optimum
from diminuendo.offline.greedy import Hindsight, data_bound, greedy
from diminuendo.offline.private_greedy import PrivateSlate, private_greedy
from diminuendo.offline.rules import SlateRules
from diminuendo.types import ONE_MINUS_1_OVER_E

__all__ = [
    "ONE_MINUS_1_OVER_E",
    "Bracket",
    "Hindsight",
    "HindsightByType",
    "PrivateSlate",
    "SlateRules",
    "data_bound",
    "greedy",
    "greedy_by_type",
    "optimum",
    "private_greedy",
    "shuffled",
]
