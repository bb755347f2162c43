"""Metrics: a closed list of public numbers, in a registry of our own.

Response counts, request latency, process size and release durations are private, and are not measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from diminuendo import __version__
from diminuendo.service.front.front import Front

MEDIA = CONTENT_TYPE_LATEST.encode()


class PublicNumbers(Collector):
    """The public numbers of one front end."""

    def __init__(self, front: Front) -> None:
        self._front = front

    def collect(self) -> Iterator[Metric]:
        """Each number, by placement, front end or population."""
        front, families = self._front, list[Metric]()

        def family(kind: type, name: str, help_: str, *labels: str) -> Any:
            result = kind(f"diminuendo_{name}", help_, labels=labels)
            families.append(result)
            return result

        here = ("front", "placement")
        family(InfoMetricFamily, "build", "The version").add_metric([], {"version": __version__})
        decisions = family(CounterMetricFamily, "decisions", "Decisions", *here)
        fallbacks = family(CounterMetricFamily, "fallbacks", "Decisions without an impression ID", *here)
        blocks = family(CounterMetricFamily, "id_blocks", "Blocks of impression IDs", *here)
        unused = family(CounterMetricFamily, "impressions_unused", "Impression IDs never shown", *here)
        version = family(GaugeMetricFamily, "menu_version", "The menu in effect", *here)
        age = family(GaugeMetricFamily, "menu_age_seconds", "Since it took effect", *here)
        releases = family(GaugeMetricFamily, "menu_releases", "Releases behind it", *here)
        signal = family(
            GaugeMetricFamily, "signal", "Whether published rewards show feedback", *here, "state"
        )
        probe = family(GaugeMetricFamily, "write_probe_age_seconds", "Since one was stored", "front")
        away = family(GaugeMetricFamily, "store_away", "Whether feedback cannot be stored", "front")
        spent = family(GaugeMetricFamily, "ledger_spent_epsilon", "Budget spent", "population")
        budget = family(GaugeMetricFamily, "ledger_budget_epsilon", "Budget", "population")
        for place in front.by_name.values():
            labels = [front.name, place.name]
            decisions.add_metric(labels, place.decisions)
            fallbacks.add_metric(labels, place.fallbacks)
            blocks.add_metric(labels, place.rounds.id_blocks)
            unused.add_metric(labels, place.rounds.lost)
            if (current := place.in_effect()) is not None:
                row, menu = current[0], current[1].menu
                version.add_metric(labels, row.version)
                age.add_metric(labels, round(front.clock() - row.effective_at, 1))
                releases.add_metric(labels, menu.releases)
                if menu.signal:
                    signal.add_metric([*labels, menu.signal], 1)
        if front.heartbeat_at is not None:
            probe.add_metric([front.name], round(front.clock() - front.heartbeat_at, 1))
        away.add_metric([front.name], bool(front.unwell))
        for population, (so_far, in_all) in front.spent.items():
            spent.add_metric([population], so_far)
            budget.add_metric([population], in_all)
        yield from families


def registry(front: Front) -> CollectorRegistry:
    """A registry with the public numbers and nothing else."""
    result = CollectorRegistry(auto_describe=False)
    result.register(PublicNumbers(front))
    return result


def page(numbers: CollectorRegistry) -> bytes:
    """As Prometheus reads it."""
    return generate_latest(numbers)
