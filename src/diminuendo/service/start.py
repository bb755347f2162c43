"""Starts a site: applies its file, and runs its processes until a signal comes."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
import urllib.request
import webbrowser
from collections.abc import Callable
from pathlib import Path

from diminuendo.errors import InvalidInput
from diminuendo.service.processes import Processes
from diminuendo.service.site import Site, read_site

READY = 60.0
"""Seconds for which front ends and trainer may take to get ready: kernels are compiled the first time."""


def apply(path: Path, say: Callable[[str], None]) -> None:
    """`diminuendo apply`, in a process of its own: it makes each learner once, and that loads compiled code."""
    done = subprocess.run(
        [sys.executable, "-m", "diminuendo.service", "apply", str(path)], capture_output=True, text=True
    )
    if done.returncode:
        raise InvalidInput(done.stderr.strip() or "The site could not be applied.")
    for line in done.stdout.splitlines():
        say(line)


def run_site(path: Path, site: Site, say: Callable[[str], None]) -> None:
    """Run all processes of a site until a signal comes."""
    processes = Processes(path, site.host, site.port, site.front_ends, say, site.trainers)
    where = f"Serving on http://{site.host}:{processes.port}" if site.front_ends else "Training"
    kinds = ((site.front_ends, "front ends"), (site.trainers, "trainers"))
    say(f"{where} with {' and '.join(f'{many} {kind}' for many, kind in kinds if many)}. Ctrl-C stops.")
    processes.run()
    say("Stopped. All acknowledged feedback is in the store.")


def run_demo(folder: Path, port: int, say: Callable[[str], None], many: int | None = None) -> None:
    """Make a site in that folder and run it until a signal comes; simulated visitors use it meanwhile.

    `many`: how many visitors come to each page; by default all of the stream.
    """
    from diminuendo.service.demo import Visitors, write_site

    if (folder / "site.db").exists():
        raise InvalidInput(
            f"{folder} holds the store of an earlier demo. Go on with `diminuendo serve {folder / 'site.toml'}`, or "
            "give the demo another folder: --out."
        )
    path, key, admin_key = write_site(folder, f"127.0.0.1:{port}")
    apply(path, say)
    site = read_site(path)
    processes = Processes(path, site.host, site.port, site.front_ends, say)
    address = f"http://{site.host}:{processes.port}"
    visitors, began = Visitors(address, key, many=many), time.monotonic()
    playing = over = False

    def ready() -> bool:
        nonlocal playing, over
        if not over and visitors.over:
            over = True
            say("All visitors have come. The dashboard goes on; Ctrl-C stops.")
        if not playing and (is_ready(address) or time.monotonic() > began + READY):
            playing = True
            visitors.start()
            say(f"Dashboard: {address}/login#{admin_key}")
            say(f"A decision: {example(address, key)}")
            webbrowser.open(f"{address}/login#{admin_key}")
        return False

    try:
        # Visitors stop before the service does: they would wait for it otherwise.
        processes.run(until=ready, before_stop=visitors.stop)
    finally:
        if visitors.left:
            say(f"{visitors.left:,} visitors left: the service did not decide in time.")
        if visitors.failed:
            say(f"{visitors.failed:,} rows of feedback were refused, or could not be sent; the log says why.")
        for page, served in visitors.served.items():
            if served:
                share = visitors.pleased[page] / served
                say(f"{page}: {served:,} visitors, {share:.1%} were shown something they wanted.")


def example(address: str, key: str) -> str:
    """A command line that asks the demo for a decision."""
    headers = f"-H 'Authorization: Bearer {key}' -H 'Content-Type: application/json'"
    return f"curl -sS {headers} -d '{{}}' {address}/v1/placements/home/decisions"


def is_ready(address: str) -> bool:
    """Whether the service at that address is ready and every placement has a menu."""
    try:
        with urllib.request.urlopen(f"{address}/readyz", timeout=1.0) as reply:
            return all(json.load(reply)["placements"].values())
    except (OSError, http.client.HTTPException, ValueError):
        return False
