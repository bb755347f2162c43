"""Audit: tries to break the promise, by listing, by watching and by guessing."""

from __future__ import annotations

from diminuendo._extras import extra
from diminuendo.audit.effort import EFFORTS, Effort
from diminuendo.audit.finding import Finding

with extra("simulate"):
    from diminuendo.audit.run import METHODS, Audit, audit

__all__ = ["EFFORTS", "METHODS", "Audit", "Effort", "Finding", "audit"]
