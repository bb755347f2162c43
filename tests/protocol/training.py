"""A trainer of the model: one call after the other, from one public time to the next, as service/trainer does it.

`call` is what it asks of the store next, `received` what it does with the reply. In between it may be paused for as
long as the explorer likes, be killed, or lose the call or its reply.
"""

from __future__ import annotations

from typing import Any

from tests.protocol.transactions import ERROR, REFUSED, SUPERSEDED
from tests.protocol.values import (
    Answer,
    Broken,
    IdBlock,
    Job,
    Label,
    Learned,
    Menu,
    Plan,
    Setup,
    Value,
    World,
    put,
)  # fmt: skip


def call(setup: Setup, world: World, trainer: int, where: int) -> Label | None:
    """What it asks of the store; None where it works by itself."""
    job = world.trainers[trainer][where]
    learned, mistakes = job.learned, setup.mistakes
    match job.at:
        case "idle":
            return ("acquire_leadership", where, trainer)
        case "begin":
            return ("begin", where)
        case "look":
            if setup.fine:
                first = "ID blocks read before the time is written" in mistakes
                return ("id_blocks", where, learned.settled) if first else ("heartbeat", where, trainer)
            return ("look", where, trainer, learned.settled)
        case "look on":
            first = "ID blocks read before the time is written" in mistakes
            return ("heartbeat", where, trainer) if first else ("id_blocks", where, learned.settled)
        case "read":
            id_block = next(each for each in job.id_blocks if each.first == learned.settled)
            return ("answers", where, id_block.first, id_block.end)
        case "charge" | "late charge":
            return ("append", where, job.fencing_token, len(job.ledger), (_name(learned, job.value), 0))
        case "keep":
            counted, plan = tuple(sorted(learned.counted)), learned.plans[0]
            value = Value(_name(learned, None), counted, learned.came, plan, _fresh(world, trainer, where))
            return ("keep", where, job.fencing_token, value)
        case "back":
            return ("back", where, _name(learned, None))
        case "enter":
            assert job.value is not None
            return ("append", where, job.fencing_token, len(job.ledger), (job.value.name, job.value.noise))
        case "plan":
            return ("plan", where, job.fencing_token, _planned(setup, world, trainer, where))
        case "seal":
            return ("now", where)
        case "forget":
            return ("forget", where, job.fencing_token, learned.settled)
        case "publish":
            last = (
                learned.plans[-1]
                if learned.plans
                else Plan(setup.blocks, *2 * (_end(learned.values[-1]),), 0)
            )
            menu = Menu(learned.version, last, job.effective, learned.values, job.key, job.fencing_token)
            return ("publish", where, job.fencing_token, menu, learned)
    return None


def _fresh(world: World, trainer: int, where: int) -> int:
    """What stands for coins: another number whenever something is drawn again."""
    job = world.trainers[trainer][where]
    return 50_000 * world.ghosts[where].rolled_back + 1_000 * job.fencing_token + 100 * trainer + job.tries


def _name(learned: Learned, value: Value | None) -> str:
    return value.name if value is not None else f"block {learned.plans[0].block}"


def _end(value: Value) -> int:
    assert value.plan is not None
    return value.plan.end


def _planned(setup: Setup, world: World, trainer: int, where: int) -> Plan:
    """The next block: smaller where little is in flight, by public times alone."""
    learned, shuffle = world.trainers[trainer][where].learned, _fresh(world, trainer, where)
    if not learned.version:
        return Plan(0, 0, setup.rounds, shuffle)
    last = learned.plans[-1]
    flying = last.end - learned.settled
    if "in flight is issued minus answered" in setup.mistakes:
        flying -= sum(each.round >= learned.settled for each in world.store[where].answers)
    size = setup.rounds if flying > 1 else max(1, setup.rounds - 1)
    return Plan(last.block + 1, last.end, last.end + size, shuffle)


def received(setup: Setup, world: World, trainer: int, where: int, reply: Any) -> World:
    """The world after the reply."""
    job = world.trainers[trainer][where]
    if reply == SUPERSEDED:
        job = Job("gone" if "who is refused gives up" in setup.mistakes else "idle")
    elif reply in (ERROR, REFUSED):
        job = Job() if job.at == "idle" else Job("begin", job.fencing_token, job.tries + 1)
    else:
        world, job = _went_on(setup, world, trainer, where, job, reply)
    return world._replace(trainers=put(world.trainers, trainer, put(world.trainers[trainer], where, job)))


def _went_on(setup: Setup, world: World, trainer: int, where: int, job: Job, reply: Any) -> tuple[World, Job]:
    learned, mistakes = job.learned, setup.mistakes
    match job.at:
        case "idle":
            return world, Job("begin", reply)
        case "begin":
            return _begun(setup, world, trainer, where, *reply)
        case "look":
            if not setup.fine:
                return world, _next(setup, job._replace(until=reply[0] + _skew(setup), id_blocks=reply[1]))
            if "ID blocks read before the time is written" in mistakes:
                return world, job._replace(at="look on", id_blocks=reply)
            return world, job._replace(at="look on", until=reply + _skew(setup))
        case "look on":
            if "ID blocks read before the time is written" in mistakes:
                return world, _next(setup, job._replace(until=reply))
            return world, _next(setup, job._replace(id_blocks=reply))
        case "read":
            return world, _taken_in(setup, world, where, job, reply)
        case "charge":
            line = (_name(learned, None), 0)
            return world, job._replace(at="keep", ledger=(*job.ledger, line))
        case "late charge":
            assert job.value is not None
            line = (job.value.name, 0)
            return world, _next(setup, job._replace(ledger=(*job.ledger, line), value=None))
        case "keep":
            counted, plan = tuple(sorted(learned.counted)), learned.plans[0]
            drawn = Value(_name(learned, None), counted, learned.came, plan, _fresh(world, trainer, where))
            return world, job._replace(at="back", value=drawn)
        case "back":
            if "used as drawn" not in mistakes:
                job = job._replace(value=reply)
            assert job.value is not None
            entered = (job.value.name, job.value.noise) in job.ledger
            return world, _released(job) if entered else job._replace(at="enter")
        case "enter":
            assert job.value is not None
            line = (job.value.name, job.value.noise)
            return world, _released(job._replace(ledger=(*job.ledger, line)))
        case "plan":
            learned = learned._replace(plans=(*learned.plans, reply))
            return world, job._replace(at="seal", learned=learned, drew=False)
        case "seal":
            return _sealed(setup, world, trainer, where, reply)
        case "forget":
            return world, job._replace(at="publish")
        case "publish":
            if "a key is old before it is" not in mistakes and len(learned.keys) > 1:
                since = [(key, reply if at is None else at) for key, at in learned.keys[:-1]]
                learned = learned._replace(keys=(*since, learned.keys[-1]))
            job = job._replace(at="drop", learned=learned)
            return world, _over(setup, job) if "keys dropped before publishing" in mistakes else job
    raise AssertionError(job.at)


def _skew(setup: Setup) -> int:
    return setup.skews[-1] if "deadline by the trainer's clock" in setup.mistakes else 0


def _begun(
    setup: Setup,
    world: World,
    trainer: int,
    where: int,
    ledger: tuple[tuple[str, int], ...],
    snapshot: Learned | None,
    menus: tuple[Menu, ...],
) -> tuple[World, Job]:
    """From the last snapshot; not on a ledger that lacks what was noted."""
    noted, job = world.notes[where][1], world.trainers[trainer][where]
    if ledger[: len(noted)] != noted and "heads are not compared" not in setup.mistakes:
        return world, job  # it is asked again and again, and releases nothing
    if snapshot is None:
        return world, Job("plan", job.fencing_token, job.tries, Learned(), ledger, moment=world.now)
    if snapshot.keys[-1][0] not in world.keys[where]:
        if not world.ghosts[where].rolled_back:
            raise Broken("the last snapshot cannot be opened")
        return world, job
    if "a plan is made anew" in setup.mistakes and snapshot.plans:
        anew = snapshot.plans[-1]._replace(shuffle=_fresh(world, trainer, where))
        snapshot = snapshot._replace(plans=(*snapshot.plans[:-1], anew))
    return world, Job("look", job.fencing_token, job.tries, snapshot, ledger)


def _next(setup: Setup, job: Job) -> Job:
    """The next thing that happened, by public times: a block was reserved out, or an ID block is settled."""
    learned = job.learned
    taken = settles = job.until
    if learned.plans and learned.plans[-1].block + 1 < setup.blocks:
        out = [each.at for each in job.id_blocks if each.end == learned.plans[-1].end]
        taken = min([*out, job.until])
    waits = [each for each in job.id_blocks if each.first == learned.settled]
    if waits and learned.plans:
        settles = waits[0].expires + setup.deadline
        if "nobody waits for what is being stored" not in setup.mistakes:
            settles += setup.within
    if min(taken, settles) >= job.until:
        return job._replace(at="look", id_blocks=(), until=0, moment=0, value=None)
    return job._replace(at="plan" if taken <= settles else "read", moment=min(taken, settles))


def _taken_in(setup: Setup, world: World, where: int, job: Job, rows: tuple[Answer, ...]) -> Job:
    """What was said in time, by whoever came."""
    learned, mistakes = job.learned, setup.mistakes
    id_block = next(each for each in job.id_blocks if each.first == learned.settled)
    deadline = id_block.expires + setup.deadline
    read = tuple(
        each.round
        for each in rows
        if (each.at <= deadline or "deadline ignored" in mistakes)
        and each.counts
        and each.key in world.keys[where]
    )
    learned = learned._replace(
        counted=(*learned.counted, *read), came=learned.came + _came(setup, id_block), settled=id_block.end
    )
    job = job._replace(learned=learned)
    if learned.settled < learned.plans[0].end:
        return _next(setup, job)
    paid = (_name(learned, None), 0) in job.ledger or "charged when it was seen" in mistakes
    return job._replace(at="keep" if paid else "charge")


def _came(setup: Setup, id_block: IdBlock) -> int:
    told = id_block.used is not None and (
        id_block.reported <= id_block.expires + setup.deadline or "late reports are heard" in setup.mistakes
    )
    return id_block.used if told and id_block.used is not None else id_block.end - id_block.first


def _released(job: Job) -> Job:
    learned = job.learned
    assert job.value is not None
    learned = learned._replace(
        values=(*learned.values, job.value), counted=(), came=0, plans=learned.plans[1:]
    )
    return job._replace(at="seal", learned=learned, drew=True)


def _sealed(setup: Setup, world: World, trainer: int, where: int, now: int) -> tuple[World, Job]:
    """A key, a note of the ledger's head, and when it takes effect."""
    job = world.trainers[trainer][where]
    learned, mistakes, publish_interval = job.learned, setup.mistakes, setup.publish_interval
    planned = -(-(job.moment + setup.publish_delay) // publish_interval) * publish_interval
    effective = planned if planned >= now else -(-now // publish_interval) * publish_interval
    if "effective when ready" in mistakes and job.drew:
        effective = now
    version = learned.version + 1
    key = 100_000 * version + _fresh(world, trainer, where)
    early = "a key is old before it is" in mistakes
    before = [
        (number, now if since is None and (early or place < len(learned.keys) - 1) else since)
        for place, (number, since) in enumerate(learned.keys)
    ]
    waits = [each.at for each in job.id_blocks if each.end > learned.settled]
    oldest = min([job.moment, *waits])
    needed = [(number, since) for number, since in before if since is None or since >= oldest]
    if "only the newest key is kept" in mistakes:
        needed = []
    learned = learned._replace(version=version, keys=(*needed, (key, None)))
    fencing_token, _ = world.notes[where]
    if job.fencing_token < fencing_token and not mistakes & {
        "whoever is superseded notes its head",
        "heads are not compared",
    }:
        return world, Job("idle")  # a later fencing token has noted a head: it is not published either
    notes = put(world.notes, where, (job.fencing_token, job.ledger))
    folder = world.keys[where] | {key}
    world = world._replace(notes=notes, keys=put(world.keys, where, folder))
    then = "publish"
    if "keys dropped before publishing" in mistakes:
        then = "drop"
    elif "answers deleted first" in mistakes:
        then = "forget"
    job = job._replace(at=then, learned=learned, effective=effective, planned=planned, key=key, before=folder)
    return world, job


def _over(setup: Setup, job: Job) -> Job:
    """Something was published: what comes next?"""
    job = job._replace(before=frozenset(), key=0, effective=0, planned=0, drew=False)
    delay = job.value is not None and (job.value.name, 0) not in job.ledger
    return job._replace(at="late charge") if delay else _next(setup, job._replace(value=None))


def alone(setup: Setup, world: World, trainer: int, where: int) -> World:
    """Keys that nobody needs are thrown away."""
    job = world.trainers[trainer][where]
    if job.at == "gone":
        return world
    assert job.at == "drop"
    needed = {number for number, _ in job.learned.keys}
    folder = world.keys[where] - (job.before - needed)
    if "keys dropped before publishing" in setup.mistakes:
        job = job._replace(at="publish")
    else:
        job = _over(setup, job)
    return world._replace(
        keys=put(world.keys, where, folder),
        trainers=put(world.trainers, trainer, put(world.trainers[trainer], where, job)),
    )
