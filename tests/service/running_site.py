"""A whole site, as `diminuendo serve` runs it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import urlopen

from diminuendo.service.keys import new_access_key
from diminuendo.service.processes import Processes
from diminuendo.service.site import read_site

READY = 120.0
"""Seconds that a site may take to get ready."""
SITE = """
{stores}
keys = "keys"
listen = "127.0.0.1:0"
[access]
client = ["{client}"]
admin = ["{admin}"]
[populations.everybody]
epsilon = 1.0
delta = {delta}
[placements.home]
population = "everybody"
"""


class Running(NamedTuple):
    """A site that runs."""

    address: str
    key: str
    """A client's key."""
    admin_key: str
    processes: Processes


@contextmanager
def site(folder: Path, *, stores: str = 'store = "site.db"', **spec: Any) -> Iterator[Running]:
    """A site with one placement, `home`, in that folder, and these lines about its store. It is stopped at the end."""
    (key, client), (admin_key, admin) = new_access_key(), new_access_key()
    lines = "".join(f"{name} = {json.dumps(said)}\n" for name, said in spec.items())
    path = folder / "site.toml"
    path.write_text(SITE.format(client=client, admin=admin, delta=spec["delta"], stores=stores) + lines)
    subprocess.run([sys.executable, "-m", "diminuendo.service", "apply", str(path)], check=True, stdout=-3)
    told = read_site(path)
    processes = Processes(path, told.host, told.port, told.front_ends, print, told.trainers)
    address = f"http://127.0.0.1:{processes.port}"
    try:
        processes.watch()
        until = time.monotonic() + READY
        while not _ready(address):
            processes.watch()
            assert time.monotonic() < until, "the site did not get ready"
            time.sleep(0.1)
        yield Running(address, key, admin_key, processes)
    finally:
        processes.stop()


def _ready(address: str) -> bool:
    try:
        with urlopen(f"{address}/readyz", timeout=1.0) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False
