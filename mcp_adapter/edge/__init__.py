"""The surroundings of a call over HTTP: who may ask from where, and how refusals look."""
