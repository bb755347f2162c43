"""The commands `check`, `apply` and `serve` of a site. They need no typer."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from diminuendo._extras import extra
from diminuendo.cli.options import Argument, Option
from diminuendo.errors import InvalidInput

if TYPE_CHECKING:
    from diminuendo.service.site import Site

StoreOption = Annotated[
    str | None, Option("Another store than the site's: a file, or postgresql://host/database.")
]


def check_command(
    site: Annotated[Path, Argument("A site's file, such as site.toml.")],
    store: StoreOption = None,
) -> None:
    """Check a site against its store, and say what `apply` would add. Writes nothing."""
    with extra("serve"):
        from diminuendo.service.apply import check_site

    for line in check_site(_read(site, store)):
        print(line)


def apply_command(
    site: Annotated[Path, Argument("A site's file, such as site.toml.")],
    store: StoreOption = None,
    adopt: Annotated[
        bool, Option("Adopt a store restored from a copy: close its populations, begin new ones.")
    ] = False,
) -> None:
    """Write a site's new populations and placements into its store; processes that run pick them up."""
    with extra("serve"):
        from diminuendo.service.apply import apply_site

    for line in apply_site(_read(site, store), adopt):
        print(line)


def serve_command(
    site: Annotated[Path | None, Argument("A site's file, such as site.toml.")] = None,
    demo: Annotated[bool, Option("Make a site, and let visitors play.")] = False,
    out: Annotated[Path, Option("With --demo: where its files are.")] = Path("out/service"),
    port: Annotated[int, Option("With --demo: where to listen; 0 for any.")] = 8080,
    store: StoreOption = None,
    new_key: Annotated[
        str | None, Option("Make an API key for a role (client, admin, auditor), and its line.")
    ] = None,
    new_token_key: Annotated[bool, Option("Encrypt tokens with a new key from the next start on.")] = False,
) -> None:
    """Run private learners behind HTTP: front ends, a trainer, a store, a dashboard."""
    with extra("serve"):
        from diminuendo.service import keys
        from diminuendo.service.api.keys import ROLES
        from diminuendo.service.start import apply, run_demo, run_site

    if new_key is not None:
        if new_key not in ROLES:
            raise InvalidInput(f"Roles are {', '.join(ROLES)}; got {new_key!r}.")
        key, line = keys.new_access_key()
        print(f"The key, shown once: {key}")
        print(f'For [access] in the site\'s file: {new_key} = ["{line}"]')
        return
    if demo:
        run_demo(out, port, print)
        return
    if site is None:
        raise InvalidInput("Name a site's file, as in `diminuendo serve site.toml`; or try `--demo`.")
    result = _read(site, store)
    if new_token_key:
        print(f"Tokens are encrypted with key {keys.rotate(result.keys)} from the next start on.")
        return
    apply(site, print)
    run_site(site, result, print)


def _read(path: Path, store: str | None) -> Site:
    """The site, with another store where one is named."""
    from diminuendo.service.site import STORE, read_site

    if store is not None:  # for the site's processes too: their arguments could be read by other users
        os.environ[STORE] = store if ":" in store else str(Path(store).absolute())
    return read_site(path)
