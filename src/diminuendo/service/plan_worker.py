"""What placements promise, worked out in a process of their own: from a `PlanQuestion`, as JSON, to JSON.

    python -m diminuendo.service.plan_worker < question.json

Front ends ask it, since they load nothing that computes (api/planning.py). The learner is made as the trainer will make
it, so what is refused here would be refused there.
"""

from __future__ import annotations

import sys
from typing import Any

import msgspec

from diminuendo.errors import DiminuendoError
from diminuendo.learners import make
from diminuendo.service.menus import public_menu
from diminuendo.service.prepare import check_affordable
from diminuendo.service.records import PlanQuestion
from diminuendo.service.trainer.learners import make_arguments


def planned(question: PlanQuestion) -> dict[str, Any]:
    """What the placement promises; refused where it cannot be made."""
    spec = question.spec
    if question.population is not None:
        whole = question.others | {question.name: spec}
        check_affordable(spec.population, question.population, whole)
    name, setting, options = make_arguments(spec, lambda: 0.0)
    learner = make(name, setting, **options)
    learner.release()
    public_menu(learner, 1)  # refused unless others can choose by its menu
    return {
        "sentence": f"All that is shown and published here is {learner.guarantee}.",
        "guarantee": learner.guarantee.as_json(),
        "learner": learner.name,
    }


def main() -> None:
    """Read a question, and answer it."""
    question = msgspec.json.decode(sys.stdin.buffer.read(), type=PlanQuestion)
    said: dict[str, Any]
    try:
        said = {"plan": planned(question), "refused": None}
    except DiminuendoError as error:
        said = {"plan": None, "refused": str(error)}
    sys.stdout.buffer.write(msgspec.json.encode(said))


if __name__ == "__main__":
    main()
