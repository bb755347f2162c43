"""Recommended with rewards and clicks: slates are shown in blocks, and one noisy count per slate is published."""
