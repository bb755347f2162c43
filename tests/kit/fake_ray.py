"""A stand-in for Ray, for tests that cannot wait for it: actors live in this process, and can be lost."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import cloudpickle


class RayActorError(Exception):
    """As Ray's."""


class RayTaskError(Exception):
    """As Ray's; here errors come as they are."""


class _Exceptions:
    RayActorError, RayTaskError = RayActorError, RayTaskError


class _Method:
    def __init__(self, actor: Actor, name: str) -> None:
        self._actor, self._name = actor, name

    def remote(self, *given: Any) -> Callable[[], Any]:
        """Done at once; what comes back is told when it is asked for. Everything travels."""
        self._actor.dies_at = (
            self._actor.dies_at[0],
            self._actor.dies_at[1] - (self._actor.dies_at[0] == self._name),
        )
        self._actor.lost = self._actor.lost or self._actor.dies_at[1] == 0
        if self._actor.lost:
            return _raise
        found = getattr(self._actor.there, self._name)(*pickle.loads(cloudpickle.dumps(given)))
        return lambda: pickle.loads(cloudpickle.dumps(found))


def _raise() -> Any:
    raise RayActorError


class Actor:
    """Somebody who holds things, until she is lost."""

    def __init__(self, there: Any) -> None:
        self.there, self.lost = there, False
        self.dies_at = "", -1
        """She is lost as she is asked that for the so manyth time."""

    def __getattr__(self, name: str) -> _Method:
        return _Method(self, name)


class FakeRay:
    """What we use of Ray."""

    exceptions = _Exceptions

    def __init__(self) -> None:
        self.actors: list[Actor] = []

    def remote(self, **options: Any) -> Any:
        """A way to make actors of a class."""

        def made(kind: Any) -> Any:
            class Maker:
                @staticmethod
                def remote(*given: Any) -> Actor:
                    self.actors.append(Actor(kind(*given)))
                    return self.actors[-1]

            return Maker

        return made

    def cluster_resources(self) -> dict[str, float]:
        """Two cores."""
        return {"CPU": 2.0}

    def get(self, waiting: list[Callable[[], Any]]) -> list[Any]:
        """All that was waited for."""
        return [one() for one in waiting]
