"""The API: what the service says over HTTP, and nothing beside it.

    app = create_app(store, ApiConfig(token_keys={1: ...}, name_key=..., keys={"serve": [sha256 of a key], ...}))
    uvicorn.run(app, access_log=False)

One app is one front end, in a process of its own; there may be many, each with its own name, on one store.
"""

from diminuendo.service.api.app import ApiConfig, create_app

__all__ = ["ApiConfig", "create_app"]
