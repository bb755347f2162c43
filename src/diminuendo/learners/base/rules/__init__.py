"""Slates by rules, for menus: what each slot may show, drawn at random, or without what one user excludes."""
