"""The check of command lines, which the host and the server share.

``shell_grammar`` turns a line into the words it consists of, or names the part that makes it more
than that; ``programs`` knows which programs run others; ``allowlist`` decides about programs;
``typed_lines`` about what is typed into a shell that is running. There is no
I/O here: the host itself finds out which file a program or a directory really is.
"""
