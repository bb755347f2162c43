"""The demo from its start to its end, as a process: it ends well, and nothing goes wrong on the way."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import diminuendo
from diminuendo.service.demo import area_names, write_site
from diminuendo.service.site import read_site

MANY = 900
"""Visitors of each page: some of them want an area whose label ends with a blank."""
DEMO = """
import sys
from pathlib import Path
from diminuendo.service.start import run_demo
run_demo(Path(sys.argv[1]), 0, lambda line: print(line, flush=True), int(sys.argv[2]))
"""
HEALTHY = {"started", "menu", "signal", "acquired", "released", "stopped"}
"""Events of a healthy run."""


def test_names_are_the_same_on_both_sides(tmp_path: Path) -> None:
    names = area_names(diminuendo.msweb().labels or ())
    site, _, _ = write_site(tmp_path, "127.0.0.1:0")
    assert [list(each.items) for each in read_site(site).placements.values()] == [names, names]


def test_the_demo_runs_to_its_end(tmp_path: Path) -> None:
    users = diminuendo.msweb()
    labels, rows = users.labels or (), users.matrices[0]
    wanted = {labels[item] for item in rows.indices[: rows.indptr[MANY]]}
    assert any(label != label.strip() for label in wanted)
    demo = subprocess.Popen(
        [sys.executable, "-c", DEMO, str(tmp_path / "demo"), str(MANY)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"BROWSER": "true"}, start_new_session=True,
    )  # fmt: skip
    assert demo.stdout is not None
    delay = threading.Timer(120.0, demo.kill)
    delay.start()
    said = list[str]()
    for line in demo.stdout:
        said.append(line)
        if line.startswith("All visitors have come."):
            break
    demo.send_signal(signal.SIGINT)
    rest, log = demo.communicate()
    delay.cancel()
    out = "".join(said) + rest
    assert demo.returncode == 0, out + log
    assert {json.loads(line)["happened"] for line in log.splitlines()} <= HEALTHY
    assert "no signal" not in log
    served = {page: int(many) for page, many in re.findall(r"^(home|offers): ([\d,]+) visitors", rest, re.M)}
    left = [int(many) for many in re.findall(r"^([\d,]+) visitors left", rest, re.M)]
    assert served.keys() == {"home", "offers"}
    assert sum(served.values()) + sum(left) == 2 * MANY
    assert "refused" not in out
