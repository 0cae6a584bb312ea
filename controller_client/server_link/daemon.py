"""The daemon's main loop: keep one connection to the server, reconnect, stop on a signal.

Programs do not depend on the daemon: they belong to their holders.
"""

import asyncio
import contextlib
import logging
import os
import platform
import signal
import socket
from http import HTTPStatus

from controller_client import __version__
from controller_client.config.daemon import DaemonConfig
from controller_client.config.errors import ConfigurationError
from controller_client.config.log_directories import faults_of
from controller_client.config.places import earlier_credential_file, read_credential
from controller_client.logs.deletion import finish_deletions
from controller_client.policy.file import policy_paths, read_policy_file, stop_files
from controller_client.policy.host_policy import HostPolicy
from controller_client.policy.kill_switch import KillSwitch, kept_stop, warn_of_places
from controller_client.protocol.limits import SUPPORTED_VERSIONS, CloseCode
from controller_client.protocol.messages import Draining, FromServer, Hello, Ping, SessionSummary
from controller_client.protocol.sentences import sentences
from controller_client.protocol.values import NAMES_FILES, PROVES_READERS, TELLS_FOUND
from controller_client.server_link.errors import (
    ForkServerLost,
    SentAway,
    ServerRefused,
    ServerUnreachable,
)
from controller_client.server_link.holders.fork_server import Spawner
from controller_client.server_link.holders.privileged import PrivilegedForkServer
from controller_client.server_link.host_identity import instance_id, lock_id, lock_state_dir
from controller_client.server_link.network.backoff import Backoff
from controller_client.server_link.network.connection import Connection, open_connection
from controller_client.server_link.ready_threads import WORKERS, ready_executor
from controller_client.server_link.router import SessionRouter
from controller_client.server_link.version import build_version, is_older
from controller_client.session_files.daemon_status import StatusFile
from controller_client.system import prctl
from controller_client.system.boot import boot_id
from controller_client.system.control_group import enable_limits
from controller_client.system.resource_limits import forbid_core_files
from controller_client.system.users.two_users import ProgramUser, give_up_rights

logger = logging.getLogger(__name__)

_LOOK_AGAIN_SECONDS = 1.0
# What a server says to a credential that it does not know. Daphne makes a 403 of each refusal.
_NOT_KNOWN = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, CloseCode.UNAUTHENTICATED)
CAPABILITIES = [
    "pty",
    "pipe",
    "run_command",
    "limits",
    "files",
    "lifetime_pause",
    PROVES_READERS,
    TELLS_FOUND,
    NAMES_FILES,
]


async def run_daemon(config: DaemonConfig) -> None:
    """Run until SIGTERM or SIGINT. Raises ConfigurationError before anything is started."""
    policies, stops = (
        policy_paths(config.policy_file, config.state_dir),
        stop_files(config.state_dir),
    )
    switch = KillSwitch(stops, kept_stop(config.state_dir))
    policy = HostPolicy([read_policy_file(path) for path in policies], switch)
    privileged = _start_privileged(config, policy.run_as)
    warn_of_places(policies, stops, policy.run_as)
    # Secrets pass through this process: its memory must not be readable by others.
    forbid_core_files()
    prctl.hide_memory()
    # The open descriptor holds the lock, so the kernel releases it however this process ends.
    lock = lock_id(lock_state_dir(config.state_dir))
    status = StatusFile(config.state_dir, version=build_version(), server=config.server_url)
    identity = instance_id(config.state_dir)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ready_executor(WORKERS, "worker"))
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signal_number, stop.set)
    if config.control_group is not None:
        enable_limits(config.control_group)
    if policy.run_as is not None:
        programs = ProgramUser.named(policy.run_as)
        config.log_paths.share_with(programs.uid, programs.gid)
    config.log_paths.make_managed()
    for text, remedy in faults_of(config.log_paths):
        logger.warning("%s. Remedy: %s", text, remedy)
    finish_deletions(config.log_paths)
    unwatch = switch.watch()
    spawner = Spawner(
        config.state_dir,
        config.control_group,
        is_adopting=True,
        run_as=policy.run_as,
        privileged=privileged,
        on_lost=stop.set,
    )
    await spawner.start()
    try:
        await Daemon(config, (identity, lock), spawner, policy, status).run_until(stop)
        if privileged is not None and privileged.returncode is not None:
            raise ForkServerLost
    finally:
        unwatch()
        status.remove()
        await spawner.close()


def _start_privileged(config: DaemonConfig, run_as: str | None) -> PrivilegedForkServer | None:
    """Start the fork server while this process may become another user, and give that right up.

    None without another user, and for root, who cannot give the right up.
    """
    privileged = None
    if run_as is not None and os.geteuid() != 0:
        privileged = PrivilegedForkServer(config.state_dir, config.control_group, run_as)
    give_up_rights()
    return privileged


class Daemon:
    """The loop that connects to the server, serves the connection and reconnects."""

    def __init__(
        self,
        config: DaemonConfig,
        identity: tuple[str, str],
        spawner: Spawner,
        policy: HostPolicy,
        status: StatusFile,
    ) -> None:
        self._config = config
        self._instance_id, self._lock_id = identity
        self._hostname = socket.gethostname()
        self._router = SessionRouter(config, spawner, policy)
        self._backoff = Backoff()
        self._connection: Connection | None = None
        # Looked at once: a directory on a mount that hangs must not keep HELLO from the server.
        self._log_roots = config.log_paths.shown_roots()
        self._last_epoch = 0
        self._status = status

    async def run_until(self, stop: asyncio.Event) -> None:
        """Stay connected until ``stop`` is set, then close the connection. Holders go on."""
        self._router.recall()
        serving = asyncio.create_task(self._stay_connected())
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if self._connection is not None:
            await self._connection.close("the controller is stopping")
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving
        await self._router.close()
        logger.info("stopped; programs go on in their holders")

    async def _stay_connected(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            began, credential = loop.time(), self._credential()
            try:
                await self._connect_known(credential)
            except ServerRefused as error:
                delay = self._backoff.refused_delay() if self._credential() == credential else 0.0
                when = (
                    f"Next attempt in {delay:.0f} s"
                    if delay
                    else "Another credential is in its file and is tried now"
                )
                level = (
                    logging.CRITICAL if error.status == CloseCode.SECOND_INSTANCE else logging.ERROR
                )
                logger.log(level, "%s", sentences(str(error), error.remedy, when))
                self._status.tell("refused", sentences(str(error), error.remedy))
            except ServerUnreachable as error:
                if isinstance(error, SentAway):
                    self._backoff.was_sent_away()
                self._backoff.was_connected(loop.time() - began)
                delay = self._backoff.next_delay()
                logger.warning("%s; next attempt in %.1f s", error, delay)
                self._status.tell("unreachable", str(error))
            except Exception as error:
                # A host that is out of descriptors or disk must reconnect without help once it has
                # some again, so no error may end this loop.
                delay = self._backoff.next_delay()
                logger.exception("the connection failed; next attempt in %.1f s", delay)
                self._status.tell("unreachable", f"the connection failed: {error!r}")
            await self._pause(delay, credential)

    def _credential(self) -> str:
        """Read the credential again: its file may be replaced while the daemon runs."""
        try:
            return read_credential(self._config.credential_file)
        except ConfigurationError:
            return self._config.credential

    async def _pause(self, seconds: float, refused: str) -> None:
        """Wait until ``seconds`` have passed or there is another credential to try."""
        while seconds > 0 and self._credential() == refused:
            # A person replaces the file, and nothing announces that. So the daemon looks.
            step = min(seconds, _LOOK_AGAIN_SECONDS)
            await asyncio.sleep(step)
            seconds -= step

    async def _connect_known(self, credential: str) -> None:
        """Connect with the credential, or with the one before it if the server does not know it.

        So it is after a restore of the server's database. Raises as ``_connect_once`` does.
        """
        try:
            await self._connect_once(credential)
        except ServerRefused as error:
            earlier = self._earlier_credential()
            if error.status not in _NOT_KNOWN or earlier is None:
                raise
            logger.warning("the server refused this host's credential; trying the one before it")
            await self._connect_once(earlier)

    def _earlier_credential(self) -> str | None:
        """Return the credential before the last rotation, if there was one."""
        try:
            return read_credential(earlier_credential_file(self._config.credential_file))
        except ConfigurationError:
            return None

    async def _connect_once(self, credential: str) -> None:
        """Connect and serve the connection to its end.

        Always raises: ServerRefused or another ServerUnreachable.
        """
        connection = self._connection = await open_connection(
            self._config.server_url, credential, self._config.way
        )
        try:
            summaries = await self._router.survey()
            welcome = await connection.handshake(self._hello(summaries))
            self._backoff.was_welcomed()
            self._last_epoch = max(self._last_epoch, welcome.epoch)
            logger.info(
                "connected under epoch %d with %d session(s)", welcome.epoch, len(summaries)
            )
            _warn_if_outdated(welcome.min_client_version)
            self._router.connect(connection, welcome)
            self._status.tell("connected")
            await self._serve(connection, welcome.heartbeat_seconds)
        finally:
            self._connection = None
            self._router.disconnect()
            await connection.close()

    async def _serve(self, connection: Connection, heartbeat_seconds: float) -> None:
        companions = [
            asyncio.create_task(connection.write_when_congested()),
            asyncio.create_task(connection.watch()),
            asyncio.create_task(_heartbeat(connection, heartbeat_seconds)),
        ]
        try:
            await connection.receive_all(self._on_message)
        finally:
            for task in companions:
                task.cancel()
            await asyncio.gather(*companions, return_exceptions=True)

    def _on_message(self, message: FromServer) -> None:
        if isinstance(message, Draining):
            logger.info("the server closes this connection: %s", message.reason[:256])
            # The server does this on purpose and spreads it over its hosts, so it says nothing
            # about the next attempt.
            self._backoff.was_sent_away()
        self._router.on_message(message)

    def _hello(self, summaries: list[SessionSummary]) -> Hello:
        return Hello(
            # A server whose database was restored from a backup notices by this epoch.
            epoch=self._last_epoch,
            versions=list(SUPPORTED_VERSIONS),
            client_version=build_version(),
            instance_id=self._instance_id,
            boot_id=boot_id(),
            os=platform.system(),
            platform=platform.platform(),
            hostname=self._hostname,
            capabilities=CAPABILITIES,
            last_cmd_seq=self._router.last_command_seq,
            sessions=summaries,
            log_roots=self._log_roots,
            lock_id=self._lock_id,
        )


def _warn_if_outdated(oldest: str) -> None:
    if is_older(__version__, oldest):
        logger.warning(
            "this daemon is of release %s, the server is tested with %s and newer: upgrade it",
            __version__,
            oldest[:32],
        )


async def _heartbeat(connection: Connection, seconds: float) -> None:
    """Send PINGs: the PONGs keep the watchdog quiet while nothing else arrives."""
    while True:
        await asyncio.sleep(seconds)
        connection.send(Ping())
