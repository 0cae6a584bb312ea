"""Commands of operators that belong to the console."""
