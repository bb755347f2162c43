"""A front end of the model, and users: who asks for rounds, shows them, and hands answers on."""

from __future__ import annotations

from typing import Any

from tests.protocol.transactions import ERROR
from tests.protocol.values import Broken, Front, Ghost, Label, Setup, World, put


def may(setup: Setup, world: World, front: int, where: int) -> list[Label]:
    """What may happen next at a front end."""
    mine, ghost = world.fronts[front][where], world.ghosts[where]
    result: list[Label] = []
    if mine.back:
        return result
    result.append(("show" if _open(world, mine) else "ask", front, where))
    if front and not any(setup.skews) and not world.fronts[0][where].back:
        return result  # users answer at the first one: it is all the same which
    again = {number for number, _ in ghost.erased}
    result += [
        ("answer", front, where, number)
        for number, _ in ghost.shown
        if number not in dict(ghost.acknowledged) or number in again
    ]
    return result


def _open(world: World, mine: Front) -> bool:
    return mine.id_block is not None and mine.next < mine.id_block.end and world.time < mine.until


def call(setup: Setup, world: World, label: Label) -> Label | None:
    """What it asks of the store for that; None where it needs nothing."""
    what, front, where, *more = label
    mine, mistakes = world.fronts[front][where], setup.mistakes
    if what == "ask":
        report = mine.report
        if mine.id_block is not None:
            report = (mine.id_block.first, mine.next - mine.id_block.first)
        own = mine.own if "front ends count rounds themselves" in mistakes else None
        return ("reserve_ids", where, setup.id_block, report, own)
    if what == "show":
        counting = setup.named and "visits counted at the answer" not in mistakes
        return ("visit", where, mine.next) if counting else None
    (number,) = more
    at = world.now if setup.within else None
    if "deadline by the front end's clock" in mistakes:
        at = world.now + setup.skews[front]
    key = world.store[where].menus[-1].key if world.store[where].menus else 0
    return ("store", where, ((number, key, dict(world.ghosts[where].shown)[number]),), at)


def received(setup: Setup, world: World, label: Label, reply: Any) -> World:
    """The world after the reply."""
    what, front, where, *more = label
    mine, ghost = world.fronts[front][where], world.ghosts[where]
    if what == "answer":
        early = "acknowledged before it is kept" in setup.mistakes
        if (reply == ERROR and not early) or more[0] in dict(ghost.acknowledged):
            return world
        ghost = ghost._replace(acknowledged=(*sorted([*ghost.acknowledged, (more[0], world.now)]),))
        return world._replace(ghosts=put(world.ghosts, where, ghost))
    if what == "show":
        mine, number = mine._replace(next=mine.next + 1), mine.next
        if reply != ERROR:
            ghost = _shown(setup, ghost, number, reply is not False)
    elif reply == ERROR:
        if mine.id_block is not None and not _open(world, mine):
            mine = mine._replace(report=(mine.id_block.first, mine.next - mine.id_block.first), id_block=None)
    else:
        id_block, _ = reply
        version = 0 if id_block is None else id_block.version
        back = version < mine.highest and id_block is not None
        mine = mine._replace(report=None, id_block=None, highest=max(version, mine.highest), back=back)
        if id_block is not None and not back:
            until = world.time + id_block.expires - id_block.at
            mine = mine._replace(id_block=id_block, next=id_block.first, until=until, own=id_block.end)
            if not (setup.fine or setup.named):
                for number in range(id_block.first, id_block.end):
                    ghost = _shown(setup, ghost, number, True)
                mine = mine._replace(next=id_block.end)
    return world._replace(
        fronts=put(world.fronts, front, put(world.fronts[front], where, mine)),
        ghosts=put(world.ghosts, where, ghost),
    )


def _shown(setup: Setup, ghost: Ghost, number: int, counts: bool) -> Ghost:
    """Somebody was shown that round."""
    if number in dict(ghost.shown) and not ghost.rolled_back:
        raise Broken("a round was shown twice")
    ghost = ghost._replace(shown=(*sorted({*ghost.shown, (number, counts)}),))
    if setup.named and sum(each for _, each in ghost.shown) > 1 and not ghost.rolled_back:
        raise Broken("more rounds of hers count than she has visits")
    return ghost
