"""A stand-in for Ray, for tests that cannot wait for it: tasks run in this process, at once, on what was pickled."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import cloudpickle

from diminuendo.learners.base import engines


class _Ref:
    def __init__(self, value: Any) -> None:
        self._bytes = cloudpickle.dumps(value)

    def value(self) -> Any:
        return pickle.loads(self._bytes)


class RayError(Exception):
    """As Ray's."""


class RayTaskError(RayError):
    """As Ray's; here errors come as they are."""


class _Exceptions:
    RayError, RayTaskError = RayError, RayTaskError


class _Task:
    def __init__(self, ray: FakeRay, function: Callable[..., Any]) -> None:
        self._ray, self._function = ray, function

    def remote(self, *given: Any) -> _Ref:
        ray = self._ray
        ray.tasks += 1
        for again in range(2 if ray.tasks in ray.lost_in else 1):
            if again or ray.tasks % ray.forgets_every == 0:
                engines._REMEMBERED.clear()  # another worker
            result = self._function(*(one.value() if isinstance(one, _Ref) else one for one in given))
        return _Ref(result)


class FakeRay:
    """What we use of Ray: `cores` workers, of which some are lost in the midst of a task, and others forget."""

    exceptions = _Exceptions

    def __init__(self, cores: int = 2, lost_in: tuple[int, ...] = (), forgets_every: int = 1 << 30) -> None:
        self._cores, self.lost_in, self.forgets_every = cores, lost_in, forgets_every
        self.tasks, self.puts = 0, 0

    def put(self, value: Any) -> _Ref:
        """An object of the cluster."""
        self.puts += 1
        return _Ref(value)

    def remote(self, **options: Any) -> Callable[[Callable[..., Any]], _Task]:
        """A way to make tasks of a function."""
        assert options["max_retries"] > 0
        return lambda function: _Task(self, function)

    def cluster_resources(self) -> dict[str, float]:
        """Its cores."""
        return {"CPU": float(self._cores)}

    def get(self, waiting: list[_Ref]) -> list[Any]:
        """All that was waited for."""
        return [one.value() for one in waiting]
