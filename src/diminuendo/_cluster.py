"""Cores of this machine, and Ray as we use it: loaded when it is asked for, and little left lying about."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from diminuendo.errors import InvalidInput

LOCAL = "local"
"""The address of a cluster that is started here, and ended by the code that started it."""


def cores() -> int:
    """How many this machine has."""
    return os.cpu_count() or 1


def ray_module() -> Any:
    """The package itself."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray reports no usage
    try:
        import ray  # here, because few have it
    except ImportError as error:
        raise InvalidInput("Ray is not installed; try `pip install 'diminuendo[ray]'`.") from error
    return ray


def joined(address: str, cores: int, *, users: bool = False) -> tuple[Any, Callable[[], None]]:
    """Ray, connected to the cluster at `address`, or to one that is started here; and how to leave it.

    Without a dashboard. `users`: users' rows will be there. Then nothing is written to disk where memory runs out,
    and another cluster must want a token: without one, all who reach it could read what is stored there.
    """
    if users and address != LOCAL and os.environ.get("RAY_AUTH_MODE") != "token":
        raise InvalidInput(
            f"Users' rows would be stored at {address!r}, where all who reach the cluster may look. Start it, "
            "and this process, with RAY_AUTH_MODE=token (Ray 2.52 or later)."
        )
    ray = ray_module()
    if ray.is_initialized():
        return ray, lambda: None
    local: dict[str, Any] = {}
    if address == LOCAL:
        local = {"num_cpus": cores, "include_dashboard": False}
        if users:
            local["_system_config"] = {"automatic_object_spilling_enabled": False}
    try:
        ray.init(address=address, log_to_driver=False, logging_level="error", **local)
    except (ConnectionError, ValueError) as error:
        raise InvalidInput(f"There is no Ray cluster at {address!r}: {error}") from error
    return ray, ray.shutdown
