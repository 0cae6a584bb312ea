"""The watcher against programs of another user, or on another terminal, host or process tree."""

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.accounts import Account, ordinary_user, requires, requires_root
from tests.support.hosts.apt_repository import INSTALLED_PACKAGES
from tests.support.hosts.truth import Ends, Scenario, Waits, Works, as_user
from tests.support.running.exclusion import alone_with

ANY = "kernel|kernel+quiet|heuristic"
"""Any evidence will do: behind sudo's own terminal an ordinary user has only the text."""


@dataclass(frozen=True)
class Watching:
    """The point of view: root watches, or the account itself."""

    account: Account
    is_root: bool

    def play(self, name: str, command: str, *steps: Waits | Works | Ends) -> str | None:
        """Run a command as the account and watch it; return the error, None if there is none."""
        prefix = (
            [*self.account.as_user, "env", f"HOME={self.account.home}", f"USER={self.account.name}"]
            if self.is_root
            else []
        )
        scenario = Scenario(name, (*prefix, "bash", "-c", f"exec {command}"), steps)
        home = str(self.account.home)
        return (
            scenario.play(home)
            if self.is_root
            else as_user(self.account, lambda: scenario.play(home))
        )

    def secret(self, text: str, answer: str | None = None) -> Waits:
        """Return a step at a password prompt, with the right password unless another is given."""
        return Waits(
            text, "secret", f"{self.account.password if answer is None else answer}\n".encode()
        )


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    """Return an account that may use sudo with a password."""
    with ordinary_user("o", may_sudo=True) as created:
        yield created


@pytest.fixture(scope="module")
def other() -> Iterator[Account]:
    """Return an account without sudo."""
    with ordinary_user("p") as created:
        yield created


@pytest.fixture(params=["root watches", "the user watches"])
def watching(request: pytest.FixtureRequest, account: Account) -> Watching:
    """Return each point of view in turn."""
    return Watching(account, is_root=request.param == "root watches")


@pytest.mark.requirement("S3.V1.2")
def test_sudo_asks_for_the_password_until_it_is_right(watching: Watching) -> None:
    requires("sudo")
    assert (
        watching.play(
            "sudo",
            "sudo -k id",
            watching.secret("assword.*: $", "bad"),
            watching.secret("again.*assword.*: $"),
            Ends(),
        )
        is None
    )


def test_a_question_behind_sudo_is_seen(watching: Watching) -> None:
    requires("sudo")
    asks = Waits("Name: $", "line", b"q\n", "kernel" if watching.is_root else ANY)
    script = 'sudo -k bash -c "sleep 0.3; read -p \\"Name: \\" x; sleep 0.3"'
    assert watching.play("sudo read", script, watching.secret("assword.*: $"), asks, Ends()) is None


def test_a_root_shell_through_sudo_is_seen(watching: Watching) -> None:
    requires("sudo")
    evidence = "kernel|kernel+quiet" if watching.is_root else ANY
    steps = [Waits("# $", "shell|line", line, evidence) for line in (b"sleep 0.4\n", b"cat\n")]
    cat = Waits("cat\r\n", "line", b"\x04", evidence)
    steps_after = [Waits("# $", "shell|line", b"exit\n", evidence), Ends()]
    # An ordinary user gets no evidence about a program there that reads without a prompt.
    rest = [cat, *steps_after] if watching.is_root else [Works(0.5, after="cat\r\n")]
    assert (
        watching.play("sudo -i", "sudo -k -i", watching.secret("assword.*: $"), *steps, *rest)
        is None
    )


def test_work_behind_sudo_is_no_prompt(watching: Watching) -> None:
    requires("sudo")
    script = 'sudo -k bash -c "echo start; sleep 2"'
    assert (
        watching.play(
            "sudo sleep",
            script,
            watching.secret("assword.*: $"),
            Works(1.8, after="start\r\n"),
            Ends(),
        )
        is None
    )


def test_prompt_like_text_of_work_behind_sudo_is_no_prompt_to_root(account: Account) -> None:
    requires("sudo")
    watching = Watching(account, is_root=True)
    script = 'sudo -k bash -c "echo -n \\"Continue? \\"; sleep 2"'
    assert (
        watching.play(
            "sudo trap",
            script,
            watching.secret("assword.*: $"),
            Works(1.8, after="Continue"),
            Ends(),
        )
        is None
    )


def test_vim_behind_sudo_is_seen(watching: Watching) -> None:
    requires("sudo", "vim")
    vim = Waits("~", "screen", b":q!\r", ANY)
    assert (
        watching.play(
            "sudo vim",
            "sudo -k vim -u NONE /tmp/nothing",
            watching.secret("assword.*: $"),
            vim,
            Ends(),
        )
        is None
    )


def test_su_refuses_a_wrong_password(watching: Watching, other: Account) -> None:
    requires("su")
    assert (
        watching.play("su", f"su {other.name}", watching.secret("Password: $", "bad"), Ends(1))
        is None
    )


def test_the_delay_after_a_wrong_password_is_work(watching: Watching, other: Account) -> None:
    requires("su")
    script = f"bash -c 'su {other.name}; sleep 1'"
    assert (
        watching.play(
            "su delay", script, watching.secret("Password: $", "bad"), Works(1.5), Ends(None)
        )
        is None
    )


def test_a_shell_of_another_user_is_seen(watching: Watching, other: Account) -> None:
    requires("su")
    evidence = "kernel|kernel+quiet" if watching.is_root else ANY
    prompt = r"\$ $"
    steps = [
        watching.secret("Password: $", other.password),
        Waits(prompt, "shell|line", b"sleep 0.5\n", evidence),
        Waits(r"sleep 0.5\r\n.*\$ $", "shell|line", b"cat\n", evidence),
        Waits("cat\r\n", "line", b"\x04", "kernel"),
        Waits(prompt, "shell|line", b"exit\n", evidence),
        Ends(),
    ]
    assert watching.play("su shell", f"su {other.name}", *steps) is None


def test_a_command_as_another_user_is_seen(watching: Watching, other: Account) -> None:
    requires("su")
    evidence = "kernel|kernel+quiet" if watching.is_root else ANY
    asks = Waits("Name: $", "line", b"q\n", evidence)
    script = f"su {other.name} -c 'read -p \"Name: \" x; sleep 0.5; echo hello'"
    assert (
        watching.play("su -c", script, watching.secret("Password: $", other.password), asks, Ends())
        is None
    )


def test_passwd_asks_for_the_current_password(watching: Watching) -> None:
    requires("passwd")
    assert (
        watching.play(
            "passwd", "passwd", watching.secret("Current password: $", "nope"), Ends(None)
        )
        is None
    )


@pytest.fixture
def gnupg_home(account: Account) -> Iterator[Path]:
    """Return a keyring whose agent asks with a full-screen pinentry."""
    directory = Path(tempfile.mkdtemp(prefix="hl-gpg-"))
    (directory / "gpg-agent.conf").write_text("pinentry-program /usr/bin/pinentry-curses\n")
    (directory / "text").write_text("text\n")
    shutil.chown(directory, account.name)
    yield directory
    as_user(
        account,
        lambda: (
            subprocess.run(
                ["gpgconf", "--homedir", str(directory), "--kill", "gpg-agent"], check=False
            ).returncode
        ),
    )
    shutil.rmtree(directory, ignore_errors=True)


def test_a_reader_outside_the_tree_is_found(account: Account, gnupg_home: Path) -> None:
    requires("gpg", "gpgconf", "pinentry-curses")
    # Only as the user: a pinentry of the user may not open root's terminal.
    watching = Watching(account, is_root=False)
    command = (
        f"env GNUPGHOME={gnupg_home} bash -c 'export GPG_TTY=$(tty); gpg -o /dev/null --yes "
        f"-c {gnupg_home}/text'"
    )
    asks = Waits("Passphrase.*Cancel", "screen|key|secret", b"\x1b", "kernel|kernel+quiet")
    assert watching.play("gpg", command, asks) is None


@pytest.fixture
def asking_package() -> Iterator[tuple[str, Path]]:
    """Return a package whose installation asks a question."""
    requires_root()
    requires("apt-get", "dpkg-deb")
    directory = Path(tempfile.mkdtemp(prefix="holdline-deb-"))
    name = f"holdline-asks-{directory.name.rpartition('-')[2].replace('_', '').lower()}"
    control = directory / "tree" / "DEBIAN"
    control.mkdir(parents=True)
    (control / "control").write_text(
        f"Package: {name}\nVersion: 1.0\nArchitecture: all\nMaintainer: Tests <t@example.org>\n"
        "Description: built by a test\n"
    )
    script = control / "postinst"
    script.write_text(
        "#!/bin/bash\nsleep 0.3\nread -p 'Favourite colour? ' x </dev/tty\nsleep 0.3\n"
    )
    script.chmod(0o755)
    directory.chmod(0o755)
    package = directory / "asks.deb"
    subprocess.run(
        ["dpkg-deb", "--build", "--root-owner-group", str(directory / "tree"), str(package)],
        check=True,
        capture_output=True,
    )
    with alone_with(INSTALLED_PACKAGES):
        yield name, package
        subprocess.run(["dpkg", "--purge", name], check=False, capture_output=True)
    shutil.rmtree(directory)


def test_a_question_on_the_terminal_apt_gives_to_dpkg_is_seen(
    asking_package: tuple[str, Path], tmp_path: Path
) -> None:
    steps = (Waits("colour\\? $", "line", b"red\n", "kernel|kernel+quiet"), Ends())
    assert (
        Scenario("apt", ("apt-get", "install", str(asking_package[1])), steps).play(str(tmp_path))
        is None
    )


def test_apt_get_asks_before_it_removes(asking_package: tuple[str, Path], tmp_path: Path) -> None:
    name, package = asking_package
    subprocess.run(["dpkg", "--unpack", str(package)], check=True, capture_output=True)
    steps = (Waits(r"\[Y/n\] $", "line", b"n\n"), Ends(1))
    assert Scenario("apt", ("apt-get", "remove", name), steps).play(str(tmp_path)) is None


@pytest.fixture(scope="module")
def far_host(account: Account) -> Iterator[str]:
    """Return the command line that logs in to a loopback sshd as the account."""
    requires_root()
    requires("ssh", "ssh-keygen")
    program = shutil.which("sshd", path="/usr/sbin:/sbin:/usr/bin")
    if program is None:
        pytest.skip("not installed: sshd")
    from tests.support.ports import free_port

    directory, port = Path(tempfile.mkdtemp(prefix="holdline-sshd-")), free_port()
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(directory / "key")], check=True
    )
    Path("/run/sshd").mkdir(exist_ok=True)
    options = [
        "PidFile=none",
        "UsePAM=no",
        "StrictModes=no",
        "ListenAddress=127.0.0.1",
        f"HostKey={directory}/key",
    ]
    arguments = [
        program,
        "-D",
        "-e",
        "-f",
        "/dev/null",
        "-p",
        str(port),
        *(part for option in options for part in ("-o", option)),
    ]
    server = subprocess.Popen(arguments, stderr=subprocess.PIPE)
    assert server.stderr is not None
    while b"listening" not in server.stderr.readline():
        assert server.poll() is None
    known = (
        f"-o UserKnownHostsFile={directory}/known -o GlobalKnownHostsFile=/dev/null -o "
        "PubkeyAuthentication=no"
    )
    yield f"ssh -p {port} {known} -o StrictHostKeyChecking=ask {account.name}@127.0.0.1"
    server.kill()
    server.wait()
    server.stderr.close()
    shutil.rmtree(directory)


LogIn = Callable[[Watching], list[Waits]]


@pytest.fixture
def log_in() -> LogIn:
    """Return the steps of a login to the far host, whose key is unknown."""

    def steps(watching: Watching) -> list[Waits]:
        return [
            Waits(r"\[fingerprint\]\)\? $", "line", b"yes\n"),
            watching.secret("[pP]assword: $"),
        ]

    return steps


@pytest.mark.requirement("S3.V1.3")
def test_a_far_shell_is_seen_waiting_by_its_prompt(
    watching: Watching, far_host: str, log_in: LogIn
) -> None:
    steps = [
        *log_in(watching),
        Waits(r"\$ $", "shell|line", b"sleep 0.7\n", "heuristic"),
        Waits(r"sleep 0.7\r\n.*\$ $", "shell|line", b"read -p 'rem: ' x\n", "heuristic"),
        Waits("rem: $", "shell|line", b"1\n", "heuristic"),
        Waits(r"\$ $", "shell|line", b"exit\n", "heuristic"),
        Ends(),
    ]
    assert watching.play("ssh", far_host, *steps) is None


def test_a_busy_far_host_is_not_waiting(watching: Watching, far_host: str, log_in: LogIn) -> None:
    assert (
        watching.play(
            "ssh busy",
            f"{far_host} 'echo building; sleep 2'",
            *log_in(watching),
            Works(1.8, after="building\r\n"),
            Ends(),
        )
        is None
    )
