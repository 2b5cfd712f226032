"""The only way from foreign text to the screen: sanitise, colour, highlight, lay out."""
