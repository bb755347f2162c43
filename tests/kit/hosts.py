"""Several hosts on one machine: network namespaces on a bridge of their own, that may be cut off and healed.

Nothing of the machine's own network is touched, and from the hosts nothing but each other can be reached. It needs
root and Debian's iproute2; where something is missing, tests are skipped and say so. A host that is cut off hears
nothing of it: its link stays up, and packets go nowhere. One that is deaf sends as before, and is sent nothing.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

NETWORK = "10.77.0"
SUBNET = f"{NETWORK}.0/24"
MARK = "dim-hosts-"
"""Names of namespaces begin with it; then come the process that made them, and a host."""
NEW_NET = 0x40000000
"""CLONE_NEWNET of Linux."""


class Hosts:
    """Hosts by name, each with an address, joined by a bridge in a namespace of its own."""

    def __init__(self, *names: str) -> None:
        self._mark = f"{MARK}{os.getpid()}"
        self._names = names
        self._added: list[str] = []

    def make(self) -> None:
        """Make them; the test is skipped where that is not allowed."""
        for left in self._ip("netns", "list").split():  # by tests that were killed
            if left.startswith(MARK) and not Path(f"/proc/{left.split('-')[2]}").exists():
                self._ip("netns", "del", left)
        self._add("wire")
        self._ip("-n", self._of("wire"), "link", "add", "bridge", "type", "bridge")
        self._ip("-n", self._of("wire"), "link", "set", "bridge", "up")
        for name in self._names:
            self._add(name)
            ends = ("type", "veth", "peer", "name", name, "netns", self._of("wire"))
            self._ip("link", "add", "wire", "netns", self._of(name), *ends)
            self._ip("-n", self._of(name), "addr", "add", f"{self.address(name)}/24", "dev", "wire")
            for link in ("lo", "wire"):
                self._ip("-n", self._of(name), "link", "set", link, "up")
            self._ip("-n", self._of("wire"), "link", "set", name, "master", "bridge", "up")

    def remove(self) -> None:
        """All that was made is gone, with every link; processes have to be ended before."""
        while self._added:
            subprocess.run(["ip", "netns", "del", self._added.pop()], check=False)

    def address(self, name: str) -> str:
        return f"{NETWORK}.{1 + self._names.index(name)}"

    def within(self, name: str) -> list[str]:
        """How a command of that host is begun."""
        return ["ip", "netns", "exec", self._of(name)]

    def thread(self, name: str, work: Callable[[], None]) -> threading.Thread:
        """A thread of that host; so are threads that it starts, and their sockets."""

        def enter() -> None:
            place = os.open(f"/run/netns/{self._of(name)}", os.O_RDONLY)
            try:
                if ctypes.CDLL(None, use_errno=True).setns(place, NEW_NET):
                    raise OSError(ctypes.get_errno(), "cannot enter the namespace")
            finally:
                os.close(place)
            work()

        return threading.Thread(target=enter, name=f"on {name}", daemon=True)

    def cut(self, name: str) -> None:
        """From now on packets from and to it go nowhere, silently."""
        self._ip("-n", self._of("wire"), "link", "set", name, "nomaster")

    def heal(self, name: str) -> None:
        """Join it again."""
        self._ip("-n", self._of("wire"), "link", "set", name, "master", "bridge")

    def deafen(self, name: str, to: str) -> None:
        """What `to` sends it goes nowhere: the bridge believes that it is where `to` is. What it sends arrives."""
        self._fdb("replace", name, to, "static", "sticky")  # though it hears that it is elsewhere

    def undeafen(self, name: str, to: str) -> None:
        """It is sent everything again."""
        self._fdb("del", name, to)

    def _fdb(self, what: str, name: str, to: str, *how: str) -> None:
        shown = self._ip("-n", self._of(name), "-o", "link", "show", "wire")
        mac = shown.split("link/ether ")[1].split()[0]
        subprocess.run(
            ["bridge", "-n", self._of("wire"), "fdb", what, mac, "dev", to, "master", *how], check=True
        )

    def _add(self, name: str) -> None:
        done = subprocess.run(["ip", "netns", "add", self._of(name)], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"no network namespaces here: {done.stderr.strip()}")
        self._added.append(self._of(name))

    def _of(self, name: str) -> str:
        return f"{self._mark}-{name}"

    def _ip(self, *words: str) -> str:
        return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout


@contextmanager
def hosts(*names: str) -> Iterator[Hosts]:
    """Hosts of these names; skipped where they cannot be had."""
    if shutil.which("ip") is None or shutil.which("bridge") is None:
        pytest.skip("no ip and bridge here; Debian has them as iproute2")
    if os.geteuid() != 0 or not Path("/proc/self/ns/net").exists():
        pytest.skip("network namespaces are made by root, on Linux")
    made = Hosts(*names)
    try:
        made.make()
        yield made
    finally:
        made.remove()
