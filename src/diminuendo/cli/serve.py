"""The command `serve`: runs private learners behind HTTP, for a site of one's own or as a demo. It needs no typer."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from diminuendo._extras import extra
from diminuendo.cli.options import Argument, Option
from diminuendo.errors import InvalidInput


def serve_command(
    site: Annotated[Path | None, Argument("A site's file, such as site.toml.")] = None,
    demo: Annotated[bool, Option("Make a site, and let visitors play.")] = False,
    out: Annotated[Path, Option("With --demo: where its files are.")] = Path("out/service"),
    port: Annotated[int, Option("With --demo: where to listen; 0 for any.")] = 8080,
    store: Annotated[
        str | None, Option("Another store than the site's: a file, or postgresql://host/database.")
    ] = None,
    check: Annotated[bool, Option("Check the site, and start nothing.")] = False,
    adopt: Annotated[
        bool, Option("Adopt a store restored from a copy: close its populations, begin new ones.")
    ] = False,
    new_key: Annotated[
        str | None, Option("Make a key for a role (serve, operate, audit), and its line.")
    ] = None,
    new_token_key: Annotated[bool, Option("Encrypt tokens with a new key from the next start on.")] = False,
) -> None:
    """Run private learners behind HTTP: front ends, a trainer, a store, a dashboard."""
    with extra("serve"):
        from diminuendo.service import keys
        from diminuendo.service.api.keys import ROLES
        from diminuendo.service.site import STORE, read_site
        from diminuendo.service.start import prepare, run_demo, run_site

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
    if store is not None:  # the site's processes read it there; arguments are seen by everybody
        os.environ[STORE] = store if ":" in store else str(Path(store).absolute())
    result = read_site(site)
    if new_token_key:
        print(f"Tokens are encrypted with key {keys.rotate(result.keys)} from the next start on.")
        return
    prepare(site, print, adopt)
    if not check:
        run_site(site, result, print)
