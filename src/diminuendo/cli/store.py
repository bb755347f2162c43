"""The commands `move` and `roles`, without typer: a store from its file to PostgreSQL, and who may do what there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from diminuendo._extras import extra
from diminuendo.cli.options import Argument, Option
from diminuendo.errors import InvalidInput

ADDRESS = "postgresql://user@host/database; its password is better kept in ~/.pgpass."


def move_command(
    source: Annotated[Path, Argument("The file of a site's store, such as site.db.")],
    target: Annotated[str, Argument(f"Where to: {ADDRESS}")],
) -> None:
    """Move a store from its file to PostgreSQL. The file is never used again; cut off, run it again."""
    _check(target)
    with extra("serve"):
        from diminuendo.service.store.move import move
        from diminuendo.service.store.postgres.schema import PRIVATE

    counts = move(source, target)
    for table, many in counts.items():
        if table not in PRIVATE:
            print(f"{table:15}{many:>12,}")
    print("All of it was moved. Name the new place as `store` in the site's file, and start the site.")


def roles_command(
    address: Annotated[str, Argument(f"The store, as its owner: {ADDRESS}")],
    prefix: Annotated[str, Option("How the names of the roles begin.")] = "diminuendo",
) -> None:
    """Make the roles of a PostgreSQL store: for front ends and for trainers."""
    _check(address)
    with extra("serve"):
        from diminuendo.service.store.postgres.roles import make_roles

    for name in make_roles(address, prefix, print):
        print(name)


def _check(address: str) -> None:
    if not address.startswith("postgresql:"):
        raise InvalidInput("Expected the address of a PostgreSQL store: postgresql://user@host/database.")
