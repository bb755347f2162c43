"""One root for every error that diminuendo raises on purpose.

A message says what was given, what was expected, and what to do. It never repeats what a person
told us beyond the single offending value of input that is being refused at the door.
"""


class DiminuendoError(Exception):
    """The root: catch this to catch everything raised on purpose."""


class InvalidInput(DiminuendoError, ValueError):
    """An argument or a file breaks a rule; nothing was changed."""


class UnknownName(DiminuendoError, KeyError):
    """A name that is not in a table of names."""

    def __str__(self) -> str:
        return str(self.args[0])


class WrongFeedback(DiminuendoError, TypeError):
    """`observe` was given a kind of feedback that this learner does not read."""
