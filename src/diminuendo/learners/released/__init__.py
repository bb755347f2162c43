"""Hedge and a leader on sums of what people want, noisy or seldom looked at, with a bound whatever they want."""
