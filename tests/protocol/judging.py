"""Promises of the service, each checked whenever something happens that could break it.

What is compared is what happened in the store and at front ends, with everything that ever did: `Ghost`.
"""

from __future__ import annotations

from tests.protocol.transactions import in_effect
from tests.protocol.values import Broken, Checkpoint, Ghost, IdBlock, Setup, Value, World, put


def judged(setup: Setup, before: World, after: World) -> World:
    """The later world, with what is remembered of it; raises `Broken` where a promise is."""
    if before.store is after.store:
        return after
    for where, (old, new) in enumerate(zip(before.store, after.store, strict=True)):
        if old is new or after.ghosts[where].rolled_back != before.ghosts[where].rolled_back:
            continue
        ghost = after.ghosts[where]
        if old.answers is not new.answers:
            ghost = _stored(setup, ghost, old, new, after.now)
        if old.id_blocks is not new.id_blocks:
            ghost = _reserved(setup, ghost, old, new, after.now)
        if old.releases is not new.releases:
            _released(setup, ghost, old, new)
            if "seen when it is kept" in setup.mistakes:
                ghost = seen(ghost, new, new.releases)
        if old.menus is not new.menus:
            ghost = _published(setup, ghost, before, after, where)
        if ghost is not after.ghosts[where]:
            after = after._replace(ghosts=put(after.ghosts, where, ghost))
    return after


def _stored(setup: Setup, ghost: Ghost, old: Checkpoint, new: Checkpoint, now: int) -> Ghost:
    """When the first answer to each round arrived; when it was stored, whatever its row says, if that cannot be."""
    rounds = dict(ghost.stored)
    for each in new.answers:
        if not each.gone and each not in old.answers:
            there = now - setup.within <= each.at <= now
            rounds.setdefault(each.round, each.at if there else now)
    gone = {each.round: each.at for each in new.answers if each.gone}
    rounds = {number: at for number, at in rounds.items() if not (number in gone and at > gone[number])}
    return ghost._replace(stored=(*sorted(rounds.items()),))


def _reserved(setup: Setup, ghost: Ghost, old: Checkpoint, new: Checkpoint, now: int) -> Ghost:
    """All ID blocks there ever were, with what was said of them."""
    known = {each.first: each for each in ghost.id_blocks}
    for each in new.id_blocks:
        if each not in old.id_blocks:
            if each.first in known and known[each.first].at != each.at and not ghost.rolled_back:
                raise Broken("a round was handed out twice")
            known[each.first] = each
    ghost = ghost._replace(id_blocks=(*known.values(),))
    menu = in_effect(new, now)
    if menu is not None and len(new.id_blocks) > len(old.id_blocks):
        ghost = seen(ghost, new, menu.values)
        if menu.plan not in ghost.plans:
            same = [each for each in ghost.plans if each.block == menu.plan.block]
            if same and not ghost.rolled_back:
                raise Broken("a block was shown by two plans")
            ghost = ghost._replace(plans=(*ghost.plans, menu.plan))
    return ghost


def seen(ghost: Ghost, kept: Checkpoint, values: tuple[Value, ...]) -> Ghost:
    """Somebody outside has seen these."""
    for value in values:
        if value in ghost.seen:
            continue
        if any(each.name == value.name for each in ghost.seen):
            raise Broken("two releases of one name were seen")
        if (value.name, 0) not in kept.ledger and not ghost.rolled_back:
            raise Broken("a release was seen that nobody has paid for")
        ghost = ghost._replace(seen=(*ghost.seen, value))
    return ghost


def _released(setup: Setup, ghost: Ghost, old: Checkpoint, new: Checkpoint) -> None:
    """Whose answers are in a release follows from public times: all that were in time, each once."""
    if ghost.rolled_back:
        return
    for value in new.releases[len(old.releases) :]:
        assert value.plan is not None
        rounds = range(value.plan.first, value.plan.end)
        id_blocks = [each for each in ghost.id_blocks if each.first in rounds]
        deadline = {
            number: each.expires + setup.deadline
            for each in id_blocks
            for number in range(each.first, each.end)
        }
        counting = dict(ghost.shown)
        gone = {row.round: row.at for row in new.answers if row.gone} | dict(ghost.erased)
        stored = {number: at for number, at in ghost.stored if number in rounds and counting.get(number)}
        in_time = {number for number, at in stored.items() if at <= deadline.get(number, 0)}
        said = {number: at for number, at in ghost.acknowledged if number in rounds and number not in stored}
        in_time |= {
            number for number, at in said.items() if counting[number] and at <= deadline.get(number, 0)
        }
        if len(set(value.counted)) < len(value.counted):
            raise Broken("an answer was counted twice")
        if in_time - set(gone) - set(value.counted):
            raise Broken("an answer that was in time is not counted")
        if set(value.counted) - in_time:
            raise Broken("an answer is counted that was not in time")
        if any(gone.get(number, deadline[number] + 1) <= deadline[number] for number in value.counted):
            raise Broken("an answer is counted that was erased before")
        if value.came != sum(came(setup, each) for each in id_blocks):
            raise Broken("how many came does not follow from what was said in time")
        if any(each.block == value.plan.block and each != value.plan for each in ghost.plans):
            raise Broken("a block is released by another plan than it was shown by")


def came(setup: Setup, id_block: IdBlock) -> int:
    """How many users came, by public times."""
    in_time = id_block.used is not None and id_block.reported <= id_block.expires + setup.deadline
    return id_block.used if in_time and id_block.used is not None else id_block.end - id_block.first


def _published(setup: Setup, ghost: Ghost, before: World, after: World, where: int) -> Ghost:
    """Only who leads publishes; a release is what its table says; menus take effect at whole ticks to come."""
    kept, old = after.store[where], before.store[where]
    for menu in kept.menus[len(old.menus) :]:
        who = [
            number
            for number, jobs in enumerate(before.trainers)
            if jobs[where].at == "publish" and jobs[where].key == menu.key
        ]
        superseded = menu.fencing_token != old.fencing_token or (who and who[0] != old.leader)
        if superseded and not ghost.rolled_back:
            raise Broken("somebody published who does not lead any more")
        if any(each.fencing_token > menu.fencing_token for each in kept.menus) and not ghost.rolled_back:
            raise Broken("a menu of an old fencing token follows one of a newer")
        if not set(menu.values) <= set(kept.releases) and not ghost.rolled_back:
            raise Broken("a menu is made of another release than the one that is kept")
        if menu.effective % setup.publish_interval or menu.effective < after.now:
            raise Broken("a menu takes effect when it is ready")
        for jobs in before.trainers:
            if jobs[where].key == menu.key and jobs[where].at == "publish":
                ghost = ghost._replace(slips=ghost.slips + (menu.effective != jobs[where].planned))
    return ghost
