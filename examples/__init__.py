"""Examples: programs to copy from. Each runs by itself, as `python examples/first_steps.py`."""
