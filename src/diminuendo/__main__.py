"""python -m diminuendo: the command line."""

from diminuendo.cli import main

main()
