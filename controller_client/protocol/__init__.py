"""Controller protocol, version 1: pure values in, values out. No sockets, no clock, no Django.

The daemon, the holder and the server import the same modules, so a message exists once.

* :mod:`messages` - every message, as typed structs; :mod:`values` - what they carry
* :mod:`codec` - the one ``encode`` and the one ``decode``
* :mod:`limits` - every number both ends must agree on
* :mod:`session_state` - the transition table of a session
* :mod:`output_ring` - bytes with absolute offsets, and the gaps where bytes are gone
* :mod:`resume` - numbering, windows, deduplication and resume
* :mod:`keys` - names of keys and the bytes they send
* :mod:`errors` - what can be wrong with a peer or with our use of this package
"""
