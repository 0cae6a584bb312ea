"""How the holder knows that a program waits for input: the kernel is asked, text is only a tie-breaker."""

from controller_client.terminal_state.watcher import RUNNING, TerminalWatcher, Verdict

__all__ = ["RUNNING", "TerminalWatcher", "Verdict"]
