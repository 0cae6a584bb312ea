"""The daemon's life: keep one connection to the server, come back when it breaks, stop on a signal.

Programs do not depend on any of it: they belong to their holders.
"""

import asyncio
import contextlib
import logging
import signal

from controller_client import __version__
from controller_client.backoff import Backoff
from controller_client.config import DaemonConfig, read_credential
from controller_client.connection import Connection, open_connection
from controller_client.control_group import enable_limits
from controller_client.errors import ConfigurationError, ServerRefused, ServerUnreachable
from controller_client.file_service import FileService
from controller_client.host_identity import HostIdentity, host_identity, lock_state_dir
from controller_client.host_policy import HostPolicy
from controller_client.log_deletion import finish_deletions
from controller_client.log_paths import make_managed_directory
from controller_client.policy_file import load_policy_files, stop_files
from controller_client.protocol.limits import SUPPORTED_VERSIONS, CloseCode
from controller_client.protocol.messages import Draining, FromServer, Hello, Ping, SessionSummary
from controller_client.resource_limits import forbid_core_files
from controller_client.router import InteractiveSessionManager
from controller_client.spawner_client import Spawner

logger = logging.getLogger(__name__)

_LOOK_AGAIN_SECONDS = 1.0
CAPABILITIES = ["pty", "pipe", "run_command", "limits", "files"]


async def run_daemon(config: DaemonConfig) -> None:
    """Run until SIGTERM or SIGINT. Raises ConfigurationError before anything is started."""
    policy = HostPolicy(load_policy_files(config.policy_file, config.state_dir), stop_files(config.state_dir))
    # Secrets pass through here.
    forbid_core_files()
    # Held by the open descriptor; the kernel lets go of it however this process ends.
    lock_state_dir(config.state_dir)
    identity = host_identity(config.state_dir)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signal_number, stop.set)
    if config.control_group is not None:
        enable_limits(config.control_group)
    make_managed_directory(config.log_paths.managed)
    finish_deletions(config.log_paths.managed)
    spawner = Spawner(config.state_dir, config.control_group)
    await spawner.start()
    try:
        await Daemon(config, identity, spawner, policy).run_until(stop)
    finally:
        await spawner.close()


class Daemon:
    """Connects, serves, reconnects."""

    def __init__(self, config: DaemonConfig, identity: HostIdentity, spawner: Spawner, policy: HostPolicy) -> None:
        self._config = config
        self._identity = identity
        self._router = InteractiveSessionManager(
            config.state_dir, spawner, policy, FileService(config.log_paths), limits=config.limits, groups=config.control_group
        )
        self._backoff = Backoff()
        self._connection: Connection | None = None

    async def run_until(self, stop: asyncio.Event) -> None:
        """Stay connected until ``stop`` is set; then close the connection in good order and leave the holders alone."""
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
                await self._connect_once(credential)
            except ServerRefused as error:
                if error.status == CloseCode.SECOND_INSTANCE:
                    logger.critical("ALARM: this credential is in use on another host; revoke it if that host is not yours")
                delay = self._backoff.refused_delay()
                logger.error("%s; next attempt in %.0f s", error, delay)
            except ServerUnreachable as error:
                self._backoff.was_connected(loop.time() - began)
                delay = self._backoff.next_delay()
                logger.warning("%s; next attempt in %.1f s", error, delay)
            except Exception:
                # A border: a host out of descriptors or disk today must be back tomorrow, without anybody's help.
                delay = self._backoff.next_delay()
                logger.exception("the connection failed; next attempt in %.1f s", delay)
            await self._pause(delay, credential)

    def _credential(self) -> str:
        """As the file has it now: it may have been replaced while the daemon runs."""
        if self._config.credential_file is not None:
            with contextlib.suppress(ConfigurationError):
                return read_credential(self._config.credential_file)
        return self._config.credential

    async def _pause(self, seconds: float, refused: str) -> None:
        """Waits, but no longer than until there is another credential to try."""
        while seconds > 0 and self._credential() == refused:
            # A file that is replaced by a person: nobody rings.
            step = min(seconds, _LOOK_AGAIN_SECONDS)
            await asyncio.sleep(step)
            seconds -= step

    async def _connect_once(self, credential: str) -> None:
        """One connection from its first byte to its last. Always raises ServerUnreachable or its kin."""
        connection = self._connection = await open_connection(self._config.server_url, credential)
        try:
            summaries = await self._router.survey()
            welcome = await connection.handshake(self._hello(summaries))
            self._backoff.was_welcomed()
            logger.info("connected under epoch %d with %d session(s)", connection.epoch, len(summaries))
            self._router.connect(connection, welcome)
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
            logger.info("the server sends us elsewhere: %s", message.reason[:256])
            # On purpose, and others were sent at other moments: how often it happened lately says nothing about the next one.
            self._backoff.was_sent_away()
        self._router.on_message(message)

    def _hello(self, summaries: list[SessionSummary]) -> Hello:
        return Hello(
            versions=list(SUPPORTED_VERSIONS),
            client_version=__version__,
            instance_id=self._identity.instance_id,
            boot_id=self._identity.boot_id,
            os=self._identity.os,
            platform=self._identity.platform,
            hostname=self._identity.hostname,
            capabilities=CAPABILITIES,
            last_cmd_seq=self._router.last_command_seq,
            sessions=summaries,
        )


async def _heartbeat(connection: Connection, seconds: float) -> None:
    """The heartbeat task: its PONGs keep the watchdog quiet while nothing else is said."""
    while True:
        await asyncio.sleep(seconds)
        connection.send(Ping())
