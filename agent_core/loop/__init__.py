"""The pure loop: it asks, is told, and decides."""
