"""Which command lines may run: one check, used by the host and by the server.

``shell_grammar`` turns a line into the words it consists of, or names the part that makes it more than that; ``programs`` knows which
programs run others; ``allowlist`` decides about programs; ``typed_lines`` about what is typed into a shell that is running. No I/O: where a
program really is, and what a directory really is, the host finds out itself.
"""
