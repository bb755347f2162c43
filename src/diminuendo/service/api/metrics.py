"""Metrics: an allow-list of public numbers, in a registry of our own.

How many answer, how fast, how large the process is and how long releases take is private, and is not measured.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from diminuendo import __version__
from diminuendo.service.front.front import Front

MEDIA = CONTENT_TYPE_LATEST.encode()


class PublicNumbers(Collector):
    """What one front end has done that everybody may know."""

    def __init__(self, front: Front) -> None:
        self._front = front

    def collect(self) -> Iterator[Metric]:
        """Each number, by placement."""
        front, labels = self._front, ["front", "placement"]
        build = InfoMetricFamily("diminuendo_build", "What runs here")
        build.add_metric([], {"version": __version__})
        decisions = CounterMetricFamily("diminuendo_decisions", "Decisions", labels=labels)
        fallbacks = CounterMetricFamily("diminuendo_fillers", "Decisions without a round", labels=labels)
        id_blocks = CounterMetricFamily("diminuendo_id_blocks", "Leases of rounds", labels=labels)
        lost = CounterMetricFamily("diminuendo_rounds_lost", "Rounds leased and not shown", labels=labels)
        version = GaugeMetricFamily("diminuendo_menu_version", "The menu in effect", labels=labels)
        age = GaugeMetricFamily("diminuendo_menu_age_seconds", "Since when it is", labels=labels)
        releases = GaugeMetricFamily("diminuendo_menu_releases", "What it is made of", labels=labels)
        signal = GaugeMetricFamily(
            "diminuendo_signal", "What published rewards say of answers", labels=[*labels, "state"]
        )
        write_probe = GaugeMetricFamily(
            "diminuendo_canary_age_seconds", "Since a canary was stored", labels=["front"]
        )
        spent = GaugeMetricFamily("diminuendo_ledger_spent_epsilon", "What was spent", labels=["population"])
        budget = GaugeMetricFamily(
            "diminuendo_ledger_budget_epsilon", "What may be spent", labels=["population"]
        )
        away = GaugeMetricFamily(
            "diminuendo_store_away", "Whether answers cannot be stored", labels=["front"]
        )
        for place in front.by_name.values():
            whose = [front.name, place.name]
            decisions.add_metric(whose, place.decisions)
            fallbacks.add_metric(whose, place.fallbacks)
            id_blocks.add_metric(whose, place.rounds.id_blocks)
            lost.add_metric(whose, place.rounds.lost)
            if (result := place.in_effect()) is not None:
                version.add_metric(whose, result[0].version)
                age.add_metric(whose, round(front.clock() - result[0].effective_at, 1))
                releases.add_metric(whose, result[1].menu.releases)
                if state := result[1].menu.signal:
                    signal.add_metric([*whose, state], 1)
        if front.heartbeat_at is not None:
            write_probe.add_metric([front.name], round(front.clock() - front.heartbeat_at, 1))
        away.add_metric([front.name], bool(front.unwell))
        for population, (so_far, in_all) in front.spent.items():
            spent.add_metric([population], so_far)
            budget.add_metric([population], in_all)
        yield from (
            build,
            decisions,
            fallbacks,
            id_blocks,
            lost,
            version,
            age,
            releases,
            signal,
            write_probe,
            away,
            spent,
            budget,
        )


def registry(front: Front) -> CollectorRegistry:
    """A registry with the public numbers and nothing else."""
    result = CollectorRegistry(auto_describe=False)
    result.register(PublicNumbers(front))
    return result


def page(found: CollectorRegistry) -> bytes:
    """As Prometheus reads it."""
    return generate_latest(found)
