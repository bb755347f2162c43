"""One Hedge expert per slot: the paper's algorithms, what they build on, and yardsticks without privacy."""
