"""What placements promise is worked out in a process of its own: front ends load nothing that computes."""

from __future__ import annotations

import asyncio
import sys
from collections import OrderedDict
from contextlib import suppress

import msgspec

from diminuendo.service.api.bodies import PlanBody
from diminuendo.service.api.problems import Problem
from diminuendo.service.records import PlanQuestion

SECONDS = 120.0
"""After which it is given up."""
AT_ONCE = asyncio.Semaphore(1)
_made: OrderedDict[bytes, PlanBody] = OrderedDict()
KEPT = 32


async def planned(question: PlanQuestion) -> PlanBody:
    """What `service/plan_worker.py` answers; the same question is asked once."""
    given = msgspec.json.encode(question)
    if (known := _made.get(given)) is not None:
        return known
    async with AT_ONCE:
        result = await _asked(given)
    _made[given] = result
    while len(_made) > KEPT:
        _made.popitem(last=False)
    return result


async def _asked(given: bytes) -> PlanBody:
    worker = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "diminuendo.service.plan_worker",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        said, _ = await asyncio.wait_for(worker.communicate(given), SECONDS)
    except TimeoutError:
        raise Problem("busy") from None
    finally:
        with suppress(ProcessLookupError):
            worker.kill()
    if worker.returncode != 0:
        raise Problem("fault")
    return msgspec.json.decode(said, type=PlanBody)
