"""A page of the console on either server process sees, and types, the same."""

from tests.support.databases.cluster import Cluster
from tests.support.management import manage_well
from tests.support.people.console import console_socket

KEYBOARD = "0f0d3c1e-7d5a-4a6b-8c1f-2f6f1f6f4a10"
_SIGN_IN = (
    "from tests.support.people.console import sign_in; from projects.models import Project; "
    "print(sign_in('ann', Project.objects.get(name='first')))"
)


async def test_a_page_is_served_by_either_process_and_types_once(cluster: Cluster) -> None:
    key = manage_well(cluster, "shell", "-v", "0", "-c", _SIGN_IN).split()[-1]
    ports = cluster.worker_ports
    async with (
        cluster.caller_at(0) as caller,
        caller.terminal("cat") as session,
        console_socket(ports[0], key) as one,
        console_socket(ports[1], key) as other,
    ):
        for socket in (one, other):
            await socket.send("watch_session", session_id=session.session_id, offset=0)
            await socket.send("watch_board")
        await one.send("take")
        await one.receive("taken")
        await one.send("input", keyboard=KEYBOARD, seq=1, text="first\r")
        await one.receive("typed")
        shown = b"first\r\nfirst\r\n"
        for socket in (one, other):
            assert await socket.output(len(shown)) == shown
        # As after a process that died before it answered: the page comes to the other one.
        await other.send("take", has=True)
        await other.receive("taken")
        for seq, text in ((1, "first\r"), (2, "next\r")):
            await other.send("input", keyboard=KEYBOARD, seq=seq, text=text)
            await other.receive("typed")
        shown = b"next\r\nnext\r\n"
        for socket in (one, other):
            assert await socket.output(len(shown)) == shown
        await other.send("release")
        while (await one.receive("session"))["operator"]:
            pass
