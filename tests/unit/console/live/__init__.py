"""Tests of what the console's socket is made of."""
