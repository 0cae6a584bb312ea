"""Recognises the platform of this host, and what follows for terminals and commands.

======== ============================ ========= ====================
platform recognised by                terminal  commands
======== ============================ ========= ====================
linux    ``sys.platform``             pexpect   as they are
wsl      a kernel made by Microsoft,  pexpect   as they are: inside WSL a program is a Linux program
         or ``WSL_DISTRO_NAME``
macos    ``sys.platform``             pexpect   as they are
windows  ``sys.platform``             pywinpty  through ``wsl.exe``
other    anything else (BSD)          pexpect   as they are
======== ============================ ========= ====================
"""

import os
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

PlatformName = Literal["linux", "wsl", "macos", "windows", "other"]
TerminalLibrary = Literal["pexpect", "pywinpty"]

_WSL_MARK: Final = "microsoft"
_WSL_VARIABLES: Final = ("WSL_DISTRO_NAME", "WSL_INTEROP")
_WSL: Final = ("wsl.exe", "--exec")


@dataclass(frozen=True)
class Platform:
    """The platform of the host, and what follows from it."""

    name: PlatformName

    @property
    def terminal_library(self) -> TerminalLibrary:
        """The library that makes terminals."""
        return "pywinpty" if self.name == "windows" else "pexpect"

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return the arguments to execute: on Windows, a Linux command is handed to WSL."""
        return [*_WSL, *argv] if self.name == "windows" else list(argv)


def recognise(sys_platform: str, kernel_release: str, environment: Mapping[str, str]) -> Platform:
    """Return the platform for ``sys.platform``, ``platform.release()`` and the environment."""
    if sys_platform in {"win32", "cygwin", "msys"}:
        return Platform("windows")
    if sys_platform == "darwin":
        return Platform("macos")
    if not sys_platform.startswith("linux"):
        return Platform("other")
    is_wsl = _WSL_MARK in kernel_release.lower() or any(
        name in environment for name in _WSL_VARIABLES
    )
    return Platform("wsl" if is_wsl else "linux")


@lru_cache(maxsize=1)
def this_platform() -> Platform:
    """Return the platform that this process runs on."""
    return recognise(sys.platform, platform.release(), os.environ)
