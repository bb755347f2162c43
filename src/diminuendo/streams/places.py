"""Places: users at points on the earth, sites that may serve them, the nearest shown site counts."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.objectives import BestMatch
from diminuendo.streams.users import Users
from diminuendo.types import Floats

EARTH_KM = 6371.0
_CELLS_AT_ONCE = 1 << 20


def from_places(
    points: ArrayLike,
    sites: ArrayLike,
    *,
    reach_km: float,
    distance: str = "great-circle",
    name: str = "places",
) -> Users:
    """Return users at points on the earth, whom the nearest shown site serves.

    Parameters
    ----------
    points : array, shape (n_users, 2)
        Latitude and longitude of users, in degrees.
    sites : array, shape (n_items, 2)
        Latitude and longitude of sites, in degrees. They are public: choose them without looking at the points.
    reach_km : float
        A user at distance d km is served to the extent max(0, 1 - d / reach_km).
    distance : {"great-circle", "flat"}, default "great-circle"
        On a sphere, or on a plane that touches it (for one city, faster).
    name : str, default "places"
        Shown in reports.

    Returns
    -------
    Users
        Best match.

    Raises
    ------
    InvalidInput
        If coordinates or the reach are out of range.

    Examples
    --------
    >>> import diminuendo as dim
    >>> sites = dim.grid(south=52.3, north=52.7, west=13.0, east=13.8, rows=2, columns=2)
    >>> users = dim.from_places([(52.31, 13.01), (52.5, 13.4)], sites, reach_km=50)
    >>> users.values((0, 3)).round(2).tolist()
    [0.97, 0.3]
    """
    reach = _validate.positive_float(reach_km, "reach_km")
    kilometres = _validate.lookup(DISTANCES, distance, "distance")
    where, candidates = _degrees(points, "points"), _degrees(sites, "sites")
    parts = [scipy.sparse.csr_array((0, len(candidates)))]
    at_once = max(1, _CELLS_AT_ONCE // len(candidates))  # never all users times sites in memory
    for low in range(0, len(where), at_once):
        served = np.maximum(0.0, 1.0 - kilometres(where[low : low + at_once], candidates) / reach)
        parts.append(scipy.sparse.csr_array(served))
    return Users(BestMatch(), scipy.sparse.csr_array(scipy.sparse.vstack(parts)), len(candidates), name=name)


def grid(south: float, north: float, west: float, east: float, rows: int, columns: int) -> Floats:
    """Return sites on a grid, corners included, row by row from the south-west: a choice that looks at no user.

    Parameters
    ----------
    south, north : float
        Range of latitudes, in degrees.
    west, east : float
        Range of longitudes, in degrees.
    rows, columns : int
        Number of sites from south to north, and from west to east.

    Returns
    -------
    ndarray of float, shape (rows * columns, 2)

    Examples
    --------
    >>> from diminuendo import grid
    >>> grid(0, 1, 10, 12, rows=2, columns=2).tolist()
    [[0.0, 10.0], [0.0, 12.0], [1.0, 10.0], [1.0, 12.0]]
    """
    latitudes, longitudes = np.linspace(south, north, rows), np.linspace(west, east, columns)
    return np.array([(lat, lon) for lat in latitudes for lon in longitudes])


def great_circle(points: Floats, sites: Floats) -> Floats:
    """Kilometres on a sphere, points by sites (haversine)."""
    a, b = np.radians(points)[:, None, :], np.radians(sites)[None, :, :]
    half_lat, half_lon = np.sin((a[..., 0] - b[..., 0]) / 2), np.sin((a[..., 1] - b[..., 1]) / 2)
    chord = half_lat**2 + np.cos(a[..., 0]) * np.cos(b[..., 0]) * half_lon**2
    distance: Floats = 2 * EARTH_KM * np.arcsin(np.minimum(1.0, np.sqrt(chord)))
    return distance


def flat(points: Floats, sites: Floats) -> Floats:
    """Kilometres on a plane that touches the earth amid the sites: good within a city, and fast.

    One degree of latitude is taken as 110.574 km and one of longitude as 111.320 km times the cosine of
    the latitude halfway between the outermost sites.
    """
    middle = (sites[:, 0].min() + sites[:, 0].max()) / 2
    north = 110.574 * (points[:, None, 0] - sites[None, :, 0])
    east = 111.320 * np.cos(np.radians(middle)) * (points[:, None, 1] - sites[None, :, 1])
    distance: Floats = np.hypot(north, east)
    return distance


DISTANCES = {"great-circle": great_circle, "flat": flat}


def _degrees(given: ArrayLike, name: str) -> NDArray[np.float64]:
    array = np.atleast_2d(_validate.numbers(given, name))
    if array.ndim != 2 or array.shape[1] != 2 or len(array) == 0:
        raise InvalidInput(f"{name} must be (latitude, longitude) pairs; got shape {array.shape}.")
    wrong = ~((np.abs(array[:, 0]) <= 90) & (np.abs(array[:, 1]) <= 180))
    if wrong.any():
        bad = int(np.argmax(wrong))
        raise InvalidInput(
            f"{name}, row {bad}: expected a latitude in [-90, 90] and a longitude in [-180, 180]."
        )
    return array
