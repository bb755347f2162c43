"""Recommended with full information: users answer chains of questions, and greedy follows what they said."""
