"""Audit: tries to break the promise, by listing, by watching and by guessing."""

from __future__ import annotations

from diminuendo.audit.effort import EFFORTS, Effort
from diminuendo.audit.finding import Finding
from diminuendo.audit.run import METHODS, Audit, audit

__all__ = ["EFFORTS", "METHODS", "Audit", "Effort", "Finding", "audit"]
