"""The users of a release: what they said, in groups or parts, as it was when the release began; and how they go on."""
