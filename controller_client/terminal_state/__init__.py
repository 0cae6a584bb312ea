"""The decision whether a program waits for input: the kernel is asked, text only breaks ties."""

from controller_client.terminal_state.decision import RUNNING, Verdict
from controller_client.terminal_state.kernel.outsiders import pipe_holders
from controller_client.terminal_state.watcher import TerminalWatcher

__all__ = ["RUNNING", "TerminalWatcher", "Verdict", "pipe_holders"]
