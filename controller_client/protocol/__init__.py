"""The controller protocol, version 1, as pure functions: no sockets, no clock, no Django.

The daemon, the holder and the server import the same modules, so each message is defined once.

* :mod:`messages` - every message, as typed structs, and :mod:`values`, the parts of messages
* :mod:`codec` - encoding and decoding of frames
* :mod:`limits` - every number that both ends must agree on
* :mod:`session_state` - the transition table of a session
* :mod:`output_ring` - bytes with absolute offsets, and the gaps where bytes are gone
* :mod:`resume` - numbering, windows, deduplication and resume
* :mod:`terminal_text` - bytes of a terminal as text that hides nothing
* :mod:`keys` - names of keys and the bytes they send
* :mod:`signal_names` - names of signals and their numbers
* :mod:`sentences` - texts for people, joined to sentences
* :mod:`errors` - errors of a peer, and errors in our use of this package
"""
