"""Families as plain records, for snapshots: a family is its name and its public parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from diminuendo.errors import InvalidInput
from diminuendo.objectives.best_match import BestMatch
from diminuendo.objectives.concave import Concave
from diminuendo.objectives.coverage import Coverage
from diminuendo.objectives.family import Family
from diminuendo.objectives.mixture import Mixture
from diminuendo.objectives.noisy_or import NoisyOr


def to_record(family: Family) -> dict[str, Any]:
    """What JSON can hold."""
    if isinstance(family, Mixture):
        parts = [to_record(part) for part in family.parts]
        return {"family": family.name, "parts": parts, "shares": list(family.shares)}
    if isinstance(family, Coverage):
        marks = scipy.sparse.csr_array(family.incidence)
        arrays = {name: getattr(marks, name).tolist() for name in ("indptr", "indices")}
        return {"family": family.name, "shape": list(marks.shape)} | arrays
    if isinstance(family, Concave):
        return {"family": family.name, "curve": family.curve, "scale": family.scale}
    if isinstance(family, (NoisyOr, BestMatch)):
        return {"family": family.name}
    raise InvalidInput(f"Objectives of family {family.name!r} cannot be written down.")


def from_record(record: dict[str, Any]) -> Family:
    """The family of a record."""
    facts = dict(record)
    name = facts.pop("family")
    if name == Mixture.name:
        return Mixture(tuple(from_record(part) for part in facts["parts"]), tuple(facts["shares"]))
    if name == Coverage.name:
        ones = np.ones(len(facts["indices"]))
        return Coverage(
            scipy.sparse.csr_array((ones, facts["indices"], facts["indptr"]), shape=facts["shape"])
        )
    kinds: dict[str, type[Family]] = {kind.name: kind for kind in (NoisyOr, BestMatch, Concave)}
    if name not in kinds:
        raise InvalidInput(f"There is no family called {name!r}.")
    return kinds[name](**facts)
