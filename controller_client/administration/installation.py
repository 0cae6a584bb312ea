"""The place of this host's installation: its user, its directories and its command."""

import argparse
import json
import os
import pwd
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypedDict

from controller_client.config.errors import ConfigurationError
from controller_client.config.file import OFF, SYSTEM_FILE, read_file, user_file
from controller_client.config.owned_file import read_owned_file
from controller_client.config.places import SERVICE_STATE_DIR, default_state_dir
from controller_client.config.server_address import check_server_url, check_way
from controller_client.protocol.terminal_text.unseen import without_controls

USER: Final = "holdline"
COMMAND: Final = "holdline-controller"


class Switch(TypedDict, total=False):
    """The arguments of ``subprocess`` that make a child of root's another user."""

    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True)
class Installation:
    """An installation for the whole host, or for one user (``is_system`` False).

    ``user`` is whom the daemon runs as, and the programs of its sessions unless the policy says
    otherwise.
    """

    is_system: bool
    user: str
    state_dir: Path
    config_file: Path

    @property
    def credential_file(self) -> Path:
        """The place where ``enroll`` writes the credential."""
        return self.state_dir / "credential"

    @property
    def account(self) -> pwd.struct_passwd:
        """The user's entry. Raises ConfigurationError if there is no such user."""
        try:
            return pwd.getpwnam(self.user)
        except KeyError:
            raise ConfigurationError(f"this host has no user {self.user!a}") from None

    def arguments(self, name: str) -> list[str]:
        """Return the command ``holdline-controller NAME`` of this installation."""
        named = [] if self.config_file == SYSTEM_FILE else ["--config", str(self.config_file)]
        return [str(command_path()), name, *named]

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the daemon: a user's own, or a bare one for the host's."""
        if not self.is_system:
            return dict(os.environ)
        return {"PATH": os.defpath, "HOME": self.account.pw_dir, "USER": self.user}

    def run_as_user(self, name: str, *arguments: str, stdin: str = "") -> str:
        """Run a command of the daemon as its user, and return what it prints.

        Raises ConfigurationError with its error if it fails.
        """
        ran = subprocess.run(
            [*self.arguments(name), *arguments],
            input=stdin,
            text=True,
            capture_output=True,
            check=False,
            cwd="/",
            env=self.environment,
            **self.switch,
        )
        if ran.returncode:
            raise ConfigurationError(ran.stderr.strip().removeprefix(f"{COMMAND}: "))
        return str(ran.stdout)

    @property
    def switch(self) -> Switch:
        """The arguments of ``subprocess`` that make root's child the user."""
        if os.geteuid() != 0:
            return {}
        account = self.account
        return {
            "user": account.pw_uid,
            "group": account.pw_gid,
            "extra_groups": groups_of(account),
        }


def find(options: argparse.Namespace) -> Installation:
    """Return the installation that the options mean: the host's for root, else the user's own."""
    if os.geteuid() == 0 and not options.user:
        state_dir = (options.state_dir or SERVICE_STATE_DIR).absolute()
        return Installation(
            is_system=True,
            user=getattr(options, "run_as", None) or _daemon_of(state_dir, options) or USER,
            state_dir=state_dir,
            config_file=_named(options, SYSTEM_FILE),
        )
    own, chosen = _own_name(), getattr(options, "run_as", None)
    if chosen not in {None, own}:
        raise ConfigurationError("--run-as needs root, and no --user")
    if os.geteuid() == 0 and options.action == "install" and chosen is None:
        raise ConfigurationError(
            "every program of root's own daemon runs as root: leave --user out, or add --run-as "
            "root if you mean it"
        )
    return Installation(
        is_system=False,
        user=own,
        state_dir=(options.state_dir or default_state_dir()).absolute(),
        config_file=_named(options, user_file()),
    )


def _own_name() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        # A container may run as any number, which nobody has given a name.
        return str(os.geteuid())


def _named(options: argparse.Namespace, usual: Path) -> Path:
    named: Path | None = options.config
    # The daemon is started in another directory.
    return usual if named is None or named == OFF else named.absolute()


def _daemon_of(state_dir: Path, options: argparse.Namespace) -> str | None:
    """Return the user of the daemon that has the directory; None if none has it yet.

    A directory of root's is one that somebody made or mounted for a daemon, unless the
    configuration allows root to be the daemon's user.
    """
    try:
        owner = state_dir.owner()
    except (OSError, KeyError):
        return None
    return owner if owner != "root" or getattr(options, "allow_root", False) else None


def command_path() -> Path:
    """Return the path of ``holdline-controller`` that stays the same after an upgrade."""
    prefix = Path(sys.prefix)
    own = prefix / "bin" / COMMAND
    if prefix.parent.name == "versions":
        own = prefix.parents[1] / "bin" / COMMAND
    if not own.exists():
        found = shutil.which(COMMAND)
        if found is None:
            raise ConfigurationError(f"there is no {own}; install the daemon first")
        own = Path(found)
    return own


def groups_of(account: pwd.struct_passwd) -> list[int]:
    """Return the numbers of all the groups of a user."""
    return os.getgrouplist(account.pw_name, account.pw_gid)


def make(place: Installation) -> None:
    """Make the daemon's user and the directories, as far as they are missing."""
    if place.is_system:
        make_user(place.user)
    account = place.account
    _make_state_directory(place.state_dir, account)
    if place.config_file == SYSTEM_FILE:
        # Policy and stop file are here too: programs of sessions cannot change them.
        _make_directory(SYSTEM_FILE.parent, 0o750, 0, account.pw_gid)
    elif not place.is_system:
        place.config_file.parent.mkdir(parents=True, exist_ok=True)


def make_user(name: str) -> None:
    """Make a user of this host, unless it is there. Raises ConfigurationError."""
    try:
        pwd.getpwnam(name)
    except KeyError:
        command = ["useradd", "--system", "--create-home", "--shell", "/bin/bash", name]
        if shutil.which(command[0]) is None:
            raise ConfigurationError(
                f"this host has no useradd: make the user {name} yourself, and run this again, or "
                "name another user with --run-as"
            ) from None
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        if made.returncode:
            raise ConfigurationError(
                f"cannot make the user {name}: {made.stderr.strip()}"
            ) from None
        say(f"made the user {name}")


def _make_state_directory(path: Path, account: pwd.struct_passwd) -> None:
    """Make the directory, or take one that is empty: a directory of others stays theirs."""
    try:
        is_taken = path.stat().st_uid != account.pw_uid and any(path.iterdir())
    except FileNotFoundError:
        is_taken = False
    except OSError as error:
        raise ConfigurationError(f"cannot look at {path}: {error.strerror}") from None
    if is_taken:
        raise ConfigurationError(
            f"{path} has files of another user than {account.pw_name}; name another --state-dir, "
            "or the user with --run-as"
        )
    _make_directory(path, 0o700, account.pw_uid, account.pw_gid)


def _make_directory(path: Path, mode: int, user: int, group: int) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
        if os.geteuid() == 0:
            os.chown(path, user, group)
        path.chmod(mode)
    except OSError as error:
        raise ConfigurationError(f"cannot make {path}: {error.strerror}") from None


def write_configuration(place: Installation, options: argparse.Namespace) -> None:
    """Write the file if it names no server yet; else see that it names the same server."""
    path = place.config_file
    known = read_file(path) if path.exists() else {}
    if (said := known.get("server")) is not None:
        if options.server and _socket(str(said)) != _socket(options.server):
            raise ConfigurationError(
                f"{path} names another server: {said}. To move this host, change server there, and "
                "enrol it with --replace"
            )
        _keep(place, known, options)
        return
    if not options.server:
        raise ConfigurationError(f"name the server: --server https://HOST, or server in {path}")
    _socket(options.server)
    way = check_way(options.ca_file, options.proxy)
    values = {
        "server": options.server,
        "state_dir": str(place.state_dir) if place.state_dir != SERVICE_STATE_DIR else None,
        "ca_file": str(_readable(way.ca_file, place)) if way.ca_file else None,
        "proxy": way.proxy,
        "allow_root": True if place.account.pw_uid == 0 else None,
    }
    new = {key: value for key, value in values.items() if value and key not in known}
    text = "".join(f"{key} = {_toml(value)}\n" for key, value in new.items())
    # In front: what follows the heading of a table belongs to the table.
    before = read_owned_file("the configuration file", path) if path.exists() else ""
    write(path, text + before, place)
    say(f"wrote {path}")


def _toml(value: str | bool) -> str:
    """Write a value as TOML does. Raises ConfigurationError for a name that is not UTF-8."""
    try:
        str(value).encode()
    except UnicodeEncodeError:
        raise ConfigurationError(
            f"{value!a} is not UTF-8, so no configuration can name it"
        ) from None
    # TOML knows no surrogates, and wants this one control character escaped, too.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _keep(place: Installation, known: dict[str, object], options: argparse.Namespace) -> None:
    """Keep what the file says, and say where the options say something else."""
    path = place.config_file
    usual = SERVICE_STATE_DIR if place.is_system else default_state_dir()
    if place.state_dir != (state_dir := known.get("state_dir", usual)):
        raise ConfigurationError(f"{path} has the daemon's state in {state_dir}: change it there")
    if options.ca_file is not None and known.get("ca_file") == _copy_of_authorities(place):
        # Those of the copy may have been replaced since.
        way = check_way(options.ca_file, None)
        _readable(way.ca_file or options.ca_file, place)
    elif options.ca_file is not None and known.get("ca_file") != options.ca_file.absolute():
        say(f"kept {path}, which does not name this --ca-file: change it there")
    if options.proxy is not None and known.get("proxy") != options.proxy:
        say(f"kept {path}, which does not name this proxy: change it there")


def is_configured(place: Installation) -> bool:
    """Return whether the configuration names a server. Raises ConfigurationError."""
    return place.config_file.exists() and "server" in read_file(place.config_file)


def _readable(ca_file: Path, place: Installation) -> Path:
    """Return a copy of the authorities that the daemon's user can read; a user needs none."""
    if not place.is_system:
        return ca_file.absolute()
    copy = _copy_of_authorities(place)
    if copy != ca_file.absolute():
        # Comments may be in any encoding, and are not needed.
        write(copy, ca_file.read_bytes().decode("ascii", "ignore"), place)
    return copy


def _copy_of_authorities(place: Installation) -> Path:
    return place.config_file.with_name("ca.pem")


def _socket(server: str) -> str:
    return check_server_url(server)


def write(path: Path, text: str, place: Installation, *, mode: int = 0o640) -> None:
    """Write a file that its installation's user can read and only its owner can change.

    It is never there in part. Raises ConfigurationError.
    """
    draft = path.with_name(f".{path.name}.new")
    try:
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            if place.is_system:
                os.fchown(descriptor, 0, place.account.pw_gid)
                # Whatever the umask: the daemon reads it as a user of this group.
                os.fchmod(descriptor, mode)
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        draft.replace(path)
    except OSError as error:
        raise ConfigurationError(f"cannot write {path}: {error.strerror}") from None


def one_line(text: str) -> str:
    """Return a text of a program or a server, which could feign a line of ours, as one line."""
    return text.replace("\n", "\\n")


def say(text: str) -> None:
    """Tell the operator, as the server shows a text: nothing in it does a thing to a terminal."""
    # A name of this host need not be UTF-8.
    shown = without_controls(text).encode(errors="replace").decode()
    sys.stdout.write(f"{shown}\n")
    sys.stdout.flush()
