"""The demo: a site on a store of its own, and recorded visitors replayed against it over HTTP.

32,711 visitors of microsoft.com, by the areas that they looked at in a week of 1998. On the page `home` each reports
all wanted areas afterwards; on the page `offers` a click on the first wanted one, or no click.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

import diminuendo
from diminuendo.client import Client
from diminuendo.errors import DiminuendoError
from diminuendo.service.keys import new_access_key

SLOTS = 5
PER_SECOND = 300.0
"""Visitors of each page, on average."""
THREADS = 4
"""Of each page."""
LEAVES = 5.0
"""Seconds for which visitors may finish when the demo ends."""

SITE = """\
# A site as `diminuendo serve --demo` made it. `diminuendo serve {name}` goes on with it.
store = "site.db"
keys = "keys"
listen = "{listen}"
open_menus = true

[access]
client = ["{client}"]
admin = ["{admin}"]

[populations.readers]
epsilon = 1.0
delta = 1e-6

[populations.clickers]
epsilon = 1.0
delta = 0.0

[placements.home]
population = "readers"
items = "areas.txt"
slots = {slots}
feedback = "full"
users = {users}
epsilon = 1.0
delta = 1e-6
deadline = "2 s"
per_second = {per_second}
publish_delay = "1 s"

[placements.offers]
population = "clickers"
items = "areas.txt"
slots = {slots}
feedback = "click"
users = {users}
epsilon = 1.0
delta = 0.0
deadline = "2 s"
per_second = {per_second}
publish_delay = "1 s"
"""


def write_site(folder: Path, listen: str) -> tuple[Path, str, str]:
    """A site for the demo in that folder; the key of its client, and that of its administrator."""
    folder.mkdir(parents=True, exist_ok=True)
    users, (client_key, client), (admin_key, admin) = diminuendo.msweb(), new_access_key(), new_access_key()
    names = "".join(f"{name}\n" for name in area_names(users.labels or ()))
    (folder / "areas.txt").write_text(names, "utf-8")
    site = folder / "site.toml"
    site.write_text(
        SITE.format(
            name=site.name,
            listen=listen,
            client=client,
            admin=admin,
            slots=SLOTS,
            users=len(users),
            per_second=2 * PER_SECOND,
        )
    )
    return site, client_key, admin_key


def area_names(labels: Sequence[str]) -> list[str]:
    """The names of areas, without surrounding blanks; repeated names are numbered."""
    times = Counter[str]()
    names = list[str]()
    for label in map(str.strip, labels):
        times[label] += 1
        names.append(label if times[label] == 1 else f"{label} ({times[label]})")
    return names


class Visitors:
    """Visit both pages until they are stopped, or all have come."""

    def __init__(self, address: str, key: str, *, many: int | None = None) -> None:
        """`many`: how many visitors come to each page; without, all of them."""
        users = diminuendo.msweb()
        self._names, rows = area_names(users.labels or ()), users.matrices[0]
        self._wanted = [
            [self._names[item] for item in rows.indices[start:end]]
            for start, end in islice(zip(rows.indptr[:-1], rows.indptr[1:], strict=True), many)
        ]
        self._address, self._key = address, key
        self.pleased = {"home": 0, "offers": 0}
        """How many were shown something they wanted. The demo may know: it simulates all of them."""
        self.served = {"home": 0, "offers": 0}
        self.left = 0
        """How many left because no slate came in time."""
        self.failed = 0
        """Rows of feedback that the service refused, or that could not be sent."""
        self._stop, self._lock = threading.Event(), threading.Lock()
        self._threads = [
            threading.Thread(target=self._play, args=(page, order), daemon=True)
            for page, order in (("home", iter(self._wanted)), ("offers", iter(self._wanted)))
            for _ in range(THREADS)
        ]

    def start(self) -> None:
        """Start."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Start no further visits; those that have begun may finish."""
        self._stop.set()
        until = time.monotonic() + LEAVES
        for thread in self._threads:
            if thread.ident is not None:  # it was started
                thread.join(max(0.0, until - time.monotonic()))

    @property
    def over(self) -> bool:
        """Whether all visits are over."""
        return all(thread.ident is not None and not thread.is_alive() for thread in self._threads)

    def _play(self, page: str, visitors: Iterator[list[str]]) -> None:
        shop = Client(self._address, self._key, retry_for=LEAVES)
        while not self._stop.wait(random.expovariate(PER_SECOND / THREADS)):
            with self._lock:
                wanted = next(visitors, None)
            if wanted is None:
                break
            try:
                self._visit(shop, page, wanted)
            except DiminuendoError:  # the service is restarted, or unavailable
                with self._lock:
                    self.left += 1
                self._stop.wait(0.5)
        with suppress(DiminuendoError):  # logged and counted by the client
            shop.close()
        with self._lock:
            self.failed += shop.refused + shop.lost

    def _visit(self, shop: Client, page: str, wanted: list[str]) -> None:
        shown = shop.decide(page)
        clicked = next((slot for slot, item in enumerate(shown.slate) if item in wanted), None)
        if page == "home":
            shop.send_feedback(shown.token, ratings=wanted)
        else:
            shop.send_feedback(shown.token, click=clicked)
        with self._lock:
            self.served[page] += 1
            self.pleased[page] += clicked is not None
