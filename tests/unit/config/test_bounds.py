"""Bodies that a process holds: those of one token take no room of all others."""

from config.edge.bounds import HeldBodies

_TOKENS = [b"Bearer hl_000000000000000%d_" % number + b"A" * 43 for number in range(2)]


def test_bodies_of_one_token_leave_room_for_those_of_others() -> None:
    held, refused = HeldBodies(100, 50), list[str]()
    for number in range(6):
        name = f"{number}"
        held.grow(name, 20, lambda name=name: refused.append(name), _TOKENS[0])
        # They wait for an answer: nobody can ask them to give way any more.
        held.complete(name)
    assert (refused, held.total) == (["2", "3", "4", "5"], 40)
    for name in ("other", "nobody"):
        shown = _TOKENS[1] if name == "other" else b""
        held.grow(name, 30, lambda name=name: refused.append(name), shown)
    assert (refused[4:], held.total) == ([], 100)


def test_a_token_counts_however_it_is_written_and_only_its_bodies() -> None:
    held, refused = HeldBodies(100, 50), list[int]()
    held.grow("first", 40, lambda: refused.append(1), _TOKENS[0])
    held.grow("second", 40, lambda: refused.append(2), _TOKENS[0].replace(b"Bearer ", b"bearer   "))
    held.release("first")
    held.grow("third", 40, lambda: refused.append(3), _TOKENS[0])
    assert (refused, held.total) == ([2], 40)
    held.release("third")
    held.release("third")
    assert (held.total, held._of_token) == (0, {})
