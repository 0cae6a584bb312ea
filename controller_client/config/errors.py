"""The errors of a daemon that cannot run as it is set up. Texts never contain credentials."""


class ConfigurationError(Exception):
    """The daemon cannot run as it is set up; the text says what to change."""


class AlreadyRunning(ConfigurationError):
    """Two daemons on one state directory would both talk to its holders."""

    def __init__(self, state_dir: str) -> None:
        super().__init__(
            f"another daemon is running on {state_dir}; stop it, or give this one its own "
            "--state-dir"
        )
