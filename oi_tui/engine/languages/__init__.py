"""Programming languages behind one seam, `base.Language`."""
