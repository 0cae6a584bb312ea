"""A deterministic simulation of sessions between holders, one daemon and the server.

The protocol core and the codec are the real ones. Network, processes and database are simulated on
a virtual clock by a seeded scheduler. The scheduler drops connections, delays and duplicates
frames, and crashes the daemon or the server between any two steps.
"""
