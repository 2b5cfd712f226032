"""The store: conversations in one SQLite file, written by a thread of its own as things happen."""
