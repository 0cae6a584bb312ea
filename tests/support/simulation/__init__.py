"""Deterministic simulation of output, input and end of sessions between holders, one daemon and the server.

The protocol core is the real one, and so is the codec; everything around it (network, processes, database) is simulated on a
virtual clock by a seeded scheduler, which drops connections, delays and duplicates frames and crashes the daemon or the
server between any two steps.
"""
