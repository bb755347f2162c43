"""Contexts for payoffs and clicks: people of types that differ are shown slates of their own, planned by groups."""
