"""HTTP as uvicorn reads it, with a bound on headers: one without end would be kept, and copied with each packet."""

from __future__ import annotations

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEAD = 64 << 10
"""Bytes of which nothing comes: no request that begins, no end of its headers, nothing of a body."""


class Bounded(HttpToolsProtocol):
    """One connection. Whoever sends more than that is refused, and it is closed."""

    _unread = 0

    def data_received(self, data: bytes) -> None:
        """Something has come."""
        self._unread += len(data)
        super().data_received(data)
        if self._unread > MOST_HEAD and not self.transport.is_closing():
            self.send_400_response("Invalid HTTP request received.")

    def on_message_begin(self) -> None:
        """A request begins."""
        self._unread = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Its headers are there."""
        self._unread = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A part of its body is there."""
        self._unread = 0
        super().on_body(body)
