"""Contexts for rewards and clicks: users of types that differ are shown slates of their own, planned by groups."""
