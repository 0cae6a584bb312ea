"""The checks of ``holdline-controller doctor``: each finds one thing, and names the remedy."""
