"""What all learners share: the contract, open decisions, visit limits, readers of feedback, replay and snapshots."""
