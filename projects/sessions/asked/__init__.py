"""The answers that prompts ask for: judged from their kind, their text and what is around it.

Pure. Texts of programs are untrusted: they are cut to a bounded length before anything is searched,
and no expression takes more than linear time in it.
"""
