"""Screens: each composes widgets into one task."""
