"""Feedback, decrypted and checked: what is no response to its round counts as nothing, and raises nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import scipy

from diminuendo.objectives import FAMILIES, Family
from diminuendo.objectives.user import user
from diminuendo.service.records import PlacementSpec, Said, Shown
from diminuendo.service.store import AnswerRow
from diminuendo.service.trainer.keys import Keys
from diminuendo.streams.users import Users
from diminuendo.types import EMPTY_SLOT, Items


class Answers(NamedTuple):
    """Answers as `RemoteRounds.answered` takes them."""

    rounds: list[int]
    rows: Items
    types: list[int]
    said: Sequence[Any] | Users


class AnswerReader:
    """Opens the answers of one placement."""

    def __init__(self, placement: int, spec: PlacementSpec, keys: Keys) -> None:
        self._placement, self._spec, self._keys = placement, spec, keys
        self._decode = msgspec.msgpack.Decoder(Said).decode
        self._family = FAMILIES[spec.objective]() if spec.feedback == "full" else None

    def read(self, rows: Iterable[AnswerRow]) -> Answers:
        """All of these that can be read."""
        return self.answers(said for row in rows if (said := self._opened(row)) is not None)

    def answers(self, opened: Iterable[Said]) -> Answers:
        """All of these that are answers."""
        result = [(said.shown, answer) for said in opened for answer in self._answer(said)]
        slots = self._spec.slots
        shown: list[Shown] = [each for each, _ in result]
        return Answers(
            [each.round for each in shown],
            np.array([each.slate for each in shown], dtype=np.int32).reshape(len(shown), slots),
            [each.type for each in shown],
            [answer for _, answer in result]
            if self._family is None
            else self._users([each for _, each in result]),
        )

    def _opened(self, row: AnswerRow) -> Said | None:
        plain = self._keys.open(self._placement, row.encrypted)
        try:
            said = None if plain is None else self._decode(plain)
        except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
            return None
        if said is None or not said.shown.counts:
            return None
        shown = said.shown
        whole = len(shown.slate) == self._spec.slots and all(-1 <= item < 2**31 for item in shown.slate)
        here = shown.placement == self._placement and shown.round == row.round
        return said if here and whole and 0 <= shown.type < 2**31 else None

    def _answer(self, said: Said) -> list[Any]:
        """The response, alone in a list; an empty list if it is none, or of another kind."""
        feedback, row = self._spec.feedback, said.shown.slate
        if feedback == "bandit":
            return [] if said.reward is None or math.isnan(said.reward) else [said.reward]
        if feedback == "click":
            if said.click is None:
                return [None]
            there = 0 <= said.click < len(row) and row[said.click] != EMPTY_SLOT
            return [sum(item != EMPTY_SLOT for item in row[: said.click])] if there else []
        return [said.ratings] if said.ratings is not None and self._can_want(said.ratings) else []

    def _can_want(self, wants: dict[int, float]) -> bool:
        most = len(self._spec.items)
        if not all(0 <= item < most and 0.0 <= worth <= 1.0 for item, worth in wants.items()):
            return False
        assert self._family is not None
        return self._family.name == "noisy-or" or _accepted(self._family, wants, most)

    def _users(self, wants: list[dict[int, float]]) -> Users:
        """All of them in one table."""
        assert self._family is not None
        ordered = [sorted(each.items()) for each in wants]
        starts = np.cumsum([0, *map(len, ordered)])
        items = np.array([item for each in ordered for item, _ in each], dtype=np.int64)
        worth = np.array([worth for each in ordered for _, worth in each], dtype=np.float64)
        shape = (len(wants), len(self._spec.items))
        return Users(self._family, scipy.sparse.csr_array((worth, items, starts), shape=shape), shape[1])


def _accepted(family: Family, wants: dict[int, float], n_items: int) -> bool:
    """Whether the family takes such a user: one that it refuses must not take others along."""
    try:
        user(family, wants, n_items)
    except Exception:
        return False
    return True
