"""The processes of a site, one each: python -m diminuendo.service apply | trainer | front."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from diminuendo.errors import DiminuendoError, StoreUnavailable
from diminuendo.service.api.keys import ROLES
from diminuendo.service.keys import TRAINER, read_keys
from diminuendo.service.processes import end_with_parent
from diminuendo.service.site import read_site
from diminuendo.service.store import open_store
from diminuendo.service.store.rolled_back import refuse_older

NICE = 5
"""The niceness of trainers: decisions and feedback have priority where processors are few."""


def apply(path: Path) -> None:
    """Write what is new in the site's file into its store."""
    from diminuendo.service.apply import apply_site

    for line in apply_site(read_site(path)):
        print(line)


def trainer(path: Path, number: str) -> None:
    """Train until a signal comes, or the parent process is gone."""
    from diminuendo.learners.base.engines import engine_called
    from diminuendo.service.trainer.trainer import Trainer

    os.nice(NICE)
    site, over = read_site(path), _over()
    with open_store(site.store) as store:
        Trainer(
            store,
            site.keys / TRAINER,
            name=f"trainer-{site.machine}-{number}",
            in_store=site.trainer_keys == "store",
            engine=engine_called(site.engine),
        ).run(lambda: not over())


def _over() -> Callable[[], bool]:
    """Whether a signal came, or the parent process is gone. It interrupts nothing."""
    signals, orphaned = list[int](), end_with_parent()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: signals.append(1))
    return lambda: bool(signals) or orphaned()


def front(path: Path, handed: int, name: str) -> None:
    """Serve on a socket that the parent process has opened."""
    import asyncio
    import socket

    import uvicorn
    import uvloop

    from diminuendo.service.api.app import ApiConfig, create_app

    site, over = read_site(path), _over()  # uvicorn raises signals once more when it is done
    keys = read_keys(site.keys)
    access = {role: [each.hex() for each in site.access.get(role, ())] for role in ROLES}
    config = ApiConfig(
        keys.tokens, keys.names, access, keys.signing, f"front-{site.machine}-{name}", site.open_menus
    )

    async def end_with(server: uvicorn.Server) -> None:
        while not over():
            await asyncio.sleep(0.5)
        server.should_exit = True

    async def serve() -> None:
        settings = uvicorn.Config(
            create_app(store, config), http="httptools", access_log=False, log_config=None, lifespan="on",
            server_header=False, timeout_graceful_shutdown=5,
            log_level="critical",  # errors are in our own log, without values
        )  # fmt: skip
        server = uvicorn.Server(settings)
        watching = asyncio.create_task(end_with(server))
        await server.serve([socket.socket(fileno=handed)])
        watching.cancel()

    with open_store(site.front_store) as store:
        with suppress(OSError, StoreUnavailable):  # it may not read the marks, or the store is away
            refuse_older(store, site.keys / TRAINER)
        uvloop.run(serve())


def main(words: list[str]) -> None:
    """One process, by its name."""
    try:
        match words:
            case ["apply", path]:
                apply(Path(path))
            case ["trainer", path, number]:
                trainer(Path(path), number)
            case ["front", path, handed, name]:
                front(Path(path), int(handed), name)
            case _:
                sys.exit("Use `diminuendo serve`.")
    except DiminuendoError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(sys.argv[1:])
