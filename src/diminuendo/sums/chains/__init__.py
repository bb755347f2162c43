"""People who answer a chain of questions, kept or added up, with noise."""
