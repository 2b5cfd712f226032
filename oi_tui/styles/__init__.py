"""How the app looks: design tokens and themes (`themes`), and stylesheets."""

from pathlib import Path

STYLES = Path(__file__).parent
