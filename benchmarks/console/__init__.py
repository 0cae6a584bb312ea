"""Figures, tasks and pictures of the console, in a headless Chromium."""
