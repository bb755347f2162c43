"""Starting a site: it is checked and made known to its store, and then its processes run until somebody stops them."""

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


def prepare(path: Path, say: Callable[[str], None], adopting: bool = False) -> None:
    """Make the site's keys, populations and placements, where there are none; refuse what cannot be paid for.

    In a process of its own: it makes each learner once to see what it costs, and that loads compiled code.
    """
    done = subprocess.run(
        [sys.executable, "-m", "diminuendo.service", "prepare", str(path), *["adopt"] * adopting],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise InvalidInput(done.stderr.strip() or "The site could not be prepared.")
    for line in done.stdout.splitlines():
        say(line)


def run_site(path: Path, site: Site, say: Callable[[str], None]) -> None:
    """Run all processes of a site until somebody stops them."""
    processes = Processes(path, site.host, site.port, site.front_ends, say, site.trainers)
    where = f"Serving on http://{site.host}:{processes.port}" if site.front_ends else "Training"
    run = [
        f"{many} {what}"
        for many, what in ((site.front_ends, "front ends"), (site.trainers, "trainers"))
        if many
    ]
    say(f"{where} with {' and '.join(run)}. Ctrl-C stops.")
    processes.run()
    say("Stopped. All that was acknowledged is in the store.")


def run_demo(folder: Path, port: int, say: Callable[[str], None], many: int | None = None) -> None:
    """Make a site in that folder and run it until somebody stops it; visitors play meanwhile.

    `many`: how many visitors come to each page; without, all of the stream.
    """
    from diminuendo.service.demo import Visitors, write_site

    if (folder / "site.db").exists():
        raise InvalidInput(
            f"{folder} holds the store of an earlier demo. Go on with `diminuendo serve {folder / 'site.toml'}`, or "
            "give the demo another folder: --out."
        )
    path, key, operator = write_site(folder, f"127.0.0.1:{port}")
    prepare(path, say)
    site = read_site(path)
    processes = Processes(path, site.host, site.port, site.front_ends, say)
    address = f"http://{site.host}:{processes.port}"
    visitors, began = Visitors(address, key, many=many), time.monotonic()
    playing = over = False

    def ready() -> bool:
        nonlocal playing, over
        if not over and visitors.over:
            over = True
            say("All visitors were there. The dashboard goes on; Ctrl-C stops.")
        if not playing and (answers(f"{address}/readyz") or time.monotonic() > began + READY):
            playing = True
            visitors.start()
            say(f"Dashboard: {address}/login#{operator}")
            say(f"A decision: {example(address, key)}")
            webbrowser.open(f"{address}/login#{operator}")
        return False

    try:
        processes.run(
            until=ready, before_stop=visitors.stop
        )  # visitors of a service that is gone would wait for it
    finally:
        if visitors.left:
            say(f"{visitors.left:,} visitors left: the service did not decide in time.")
        if visitors.unanswered:
            say(f"{visitors.unanswered:,} answers were refused, or could not be sent; the log says why.")
        for page, came in visitors.came.items():
            if came:
                say(
                    f"{page}: {came:,} came, {visitors.pleased[page] / came:.1%} were shown something they wanted."
                )


def example(address: str, key: str) -> str:
    """How to ask for a decision of the demo."""
    headers = f"-H 'Authorization: Bearer {key}' -H 'Content-Type: application/json'"
    return f"curl -sS {headers} -d '{{}}' {address}/v1/placements/home/decisions"


def answers(url: str) -> bool:
    """Whether somebody answers there that all is well, and that every placement has something to show."""
    try:
        with urllib.request.urlopen(url, timeout=1.0) as reply:
            return all(json.load(reply)["placements"].values())
    except (OSError, http.client.HTTPException, ValueError):  # not there yet, or not ready
        return False
