"""What one decision, one answer and one kept person cost on this machine: `make bench` writes docs/scaling.md."""
