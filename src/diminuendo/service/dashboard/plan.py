"""The page for a plan: what a placement would do with a budget, before it is made. Public facts only go in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from diminuendo.privacy.sentence import guarantee_sentence
from diminuendo.service.dashboard.html import Html, fill, joined
from diminuendo.service.records import PlacementFacts

MOST_ITEMS = 100_000
USUAL = {"items": "300", "slots": "5", "people": "30000", "epsilon": "1", "feedback": "click"}
NUMBERS = (
    ("items", "Items", "number to choose from", "1"),
    ("slots", "Slots", "items in a slate", "1"),
    ("people", "Users", "expected number", "1"),
    ("epsilon", "ε", "privacy budget of one user", "any"),
)
FEEDBACKS = (
    ("full", "all preferences of the user"),
    ("click", "the slot of the first click"),
    ("bandit", "one reward for the slate"),
)


def asked(form: Mapping[str, str]) -> PlacementFacts:
    """What a form says, as the planner is asked; ValueError says what is wrong with it."""
    try:
        items, slots, people = (int(form[name]) for name in ("items", "slots", "people"))
        epsilon, feedback = float(form["epsilon"]), form["feedback"]
    except (KeyError, ValueError):
        raise ValueError("Items, slots and users are whole numbers, and epsilon is a number.") from None
    if not (
        1 <= slots <= items <= MOST_ITEMS and people >= 1 and epsilon > 0 and feedback in dict(FEEDBACKS)
    ):
        raise ValueError(
            f"Slots are 1 or more, items at least as many and at most {MOST_ITEMS:,}, users 1 or more, epsilon above 0."
        )
    facts = {"population": "plan", "items": [f"item {item + 1}" for item in range(items)], "slots": slots}
    return msgspec.convert(
        facts | {"feedback": feedback, "people": people, "epsilon": epsilon}, PlacementFacts
    )


def plan_page(form: Mapping[str, str], result: Html) -> Html:
    """The form, filled in as it was sent, and what came of it."""
    filled = {**USUAL, **form}
    fields = joined(
        fill(
            '<p><label for="{0}">{1}</label><input id="{0}" name="{0}" type="number" min="0" step="{2}" required '
            'value="{3}" aria-describedby="{0}-note"><small id="{0}-note">{4}</small></p>',
            Html(name), said, step, filled[name], note,
        )
        for name, said, note, step in NUMBERS
    )  # fmt: skip
    kinds = joined(
        fill(
            '<option value="{}"{}>{}</option>',
            kind,
            Html(" selected" if kind == filled["feedback"] else ""),
            said,
        )
        for kind, said in FEEDBACKS
    )
    return fill(
        '<header class="head"><div><h1>Plan</h1><p class="soft">Forecast for a placement before it is created. Nothing '
        "is charged.</p></div></header>"
        '<form class="plan" method="post" action="/plan">{}<p><label for="feedback">Feedback</label>'
        '<select id="feedback" name="feedback">{}</select><small>what comes back after a slate is shown</small></p>'
        '<p class="go"><button>Forecast</button></p></form>{}',
        fields,
        kinds,
        result,
    )


def forecast(found: Mapping[str, Any], visits: int = 1) -> Html:
    """What the planner says: the main numbers and words first, then all of it."""
    expected = found.get("expected") or {}
    look, guess = expected.get("first_look") or {}, expected.get("forecast") or {}
    numbers = [
        (found.get("learner"), "is the recommended learner"),
        (look.get("took"), "users see random slates first"),
        (guess.get("half_way"), "users until half of the way from random to hindsight: a forecast"),
        (look.get("enough"), "users would give half of the way on average: a forecast"),
        (found.get("in_flight"), "decisions may await feedback at the same time"),
    ]
    words = [expected.get("too_few"), expected.get("why"), guess.get("model")]
    promise = guarantee_sentence(found["guarantee"], visits=visits) if "guarantee" in found else ""
    return fill(
        '<section aria-labelledby="forecast"><h2 id="forecast">Forecast</h2><ul class="numbers">{}</ul>{}'
        "<blockquote><p>{}</p></blockquote><details><summary>Details of the plan</summary>{}</details></section>",
        joined(fill("<li><b>{}</b>{}</li>", _shown(value), what) for value, what in numbers if value),
        joined(fill("<p>{}</p>", one) for one in words if one),
        promise,
        _shown(expected),
    )


def _shown(value: Any) -> Html:
    if isinstance(value, Mapping):
        rows = joined(
            fill("<dt>{}</dt><dd>{}</dd>", _title(key), _shown(inner))
            for key, inner in value.items()
            if inner not in (None, "", [], {})
        )
        return fill('<dl class="plain">{}</dl>', rows)
    if isinstance(value, list):
        return fill("<ul>{}</ul>", joined(fill("<li>{}</li>", _shown(inner)) for inner in value))
    if isinstance(value, bool):
        return Html("yes" if value else "no")
    if isinstance(value, int):
        return fill("{:,}", value)
    return fill("{}", f"{value:.4g}" if isinstance(value, float) else value)


def _title(key: str) -> str:
    return key.replace("_", " ").capitalize()
