"""The server's settings: ``conf.max_wait_seconds`` is the typed value of the setting in force."""

from projects.conf.server import Conf, conf

__all__ = ["Conf", "conf"]
