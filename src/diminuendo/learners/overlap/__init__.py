"""Recommended with full information: people answer chains of questions, and greedy follows what they said."""
