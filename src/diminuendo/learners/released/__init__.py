"""One noisy sum of what people want, with a bound whatever they want."""
