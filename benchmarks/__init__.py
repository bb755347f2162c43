"""What one decision, one answer and one kept user cost on this machine: `make bench` writes docs/scaling.md."""
