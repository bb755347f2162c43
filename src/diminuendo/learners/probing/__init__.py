"""Every slot and item is tried equally often, with a bound: payoffs and clicks."""
