"""What ran the benchmark: seconds mean nothing without it."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import numba
import numpy as np

import diminuendo

CPUS = Path("/sys/devices/system/cpu")


def machine() -> dict[str, str]:
    """Processor, memory, system and versions; what cannot be found out is left out."""
    found = {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "caches": _caches(),
        "memory": _memory(),
        "load when it began": " ".join(f"{load:.2f}" for load in os.getloadavg())
        if hasattr(os, "getloadavg")
        else "",
        "system": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "diminuendo": diminuendo.__version__,
    }
    return {name: what for name, what in found.items() if what}


def _processor() -> str:
    for line in _text(Path("/proc/cpuinfo")).splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def _caches() -> str:
    """Of the first core: level, kind and size."""
    found = []
    for cache in sorted((CPUS / "cpu0" / "cache").glob("index*")):
        level, kind, size = (_text(cache / name).strip() for name in ("level", "type", "size"))
        if size:
            found.append(f"L{level} {kind.lower()} {size}")
    return ", ".join(found)


def _memory() -> str:
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB"
    except (ValueError, OSError, AttributeError):
        return ""


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
