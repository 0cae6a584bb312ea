"""Races of turns: a program and the watcher, with the program's own clock as the truth."""
