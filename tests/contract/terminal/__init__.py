"""The contract of the terminal state on hosts where no process can be inspected."""
