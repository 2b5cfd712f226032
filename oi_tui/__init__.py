"""A language model writes code on your machine: read it, edit it, approve it, watch it run line by line."""

from oi_tui._version import __version__

__all__ = ["__version__"]
