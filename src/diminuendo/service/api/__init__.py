"""The HTTP API.

    app = create_app(store, ApiConfig(token_keys={1: ...}, name_key=..., keys={"client": [sha256 of a key], ...}))
    uvicorn.run(app, access_log=False)

One app is one front end in a process of its own. Many may share a store, each with its own name.
"""

from diminuendo.service.api.app import ApiConfig, create_app

__all__ = ["ApiConfig", "create_app"]
