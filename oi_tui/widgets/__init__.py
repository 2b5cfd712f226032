"""Textual widgets: each nests its messages, stops events at its border and knows no parent."""
