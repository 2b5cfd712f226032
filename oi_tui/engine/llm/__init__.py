"""Language models behind one seam, `base.ChatModel`."""
