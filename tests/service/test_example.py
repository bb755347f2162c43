"""The line that the demo prints for whoever tries the service the first time."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from diminuendo.service.start import example
from tests.service.site import Site, block, served, spec


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl on PATH")
def test_the_line_of_the_demo_is_a_decision(tmp_path: Path) -> None:
    site = Site(tmp_path, home=spec("click"))
    site.publish("home", block(0, 9))
    with served(site.app) as port:
        line = shlex.split(example(f"http://127.0.0.1:{port}", "the key of client"))
        result = json.loads(subprocess.run(line, capture_output=True, check=True).stdout)
    assert result["slate"] == ["apple", "pear"]
    site.store.close()
