"""How the app looks: design tokens and themes (`themes`), and one stylesheet per screen."""
