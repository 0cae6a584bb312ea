"""The directories that a line may go to are told, or it is told that they cannot be."""

import pytest

from controller_client.command_policy.directories import MAX_DIRECTORIES, directories
from controller_client.command_policy.inner_lines import MAX_LINES, MAX_WORDS


@pytest.mark.parametrize(
    ("line", "paths"),
    [
        ("sh deploy.sh", ["/a"]),
        ("cd b; sh deploy.sh", ["/a", "/a/b"]),
        ("cd /b && ./x", ["/a", "/b"]),
        ("cd b; cd c", ["/a", "/a/b", "/a/c", "/a/b/c"]),
        ("cd b; popd; cd -", ["/a", "/a/b"]),
        ("make -C b all", ["/a", "/a/b"]),
        ("make -Cb", ["/a", "/a/b"]),
        ("tar --directory=b -xf x.tar", ["/a", "/a/b"]),
    ],
)
def test_a_line_tells_where_it_goes(line: str, paths: list[str]) -> None:
    assert directories(line, "/a") == (tuple(paths), True)


@pytest.mark.parametrize(
    "line",
    [
        'cd "$place"; sh x',
        "cd; sh x",
        "cd ~; sh x",
        "cd $(mktemp -d) && ./x",
        "eval 'cd /b'; sh x",
        ". ./environment; sh x",
        "alias x=y; x",
        "PATH=/b:$PATH; x",
        "export PATH=/b; x",
        "PATH=/b x",
        "CDPATH=/b; cd c; sh x",
        "for i in 1 2; do cd b; done; sh x",
        "go() { cd b; }; go; go; sh x",
        '"$program" x',
        "; ".join(f"cd {number}" for number in range(9)),
        "cd 'b",
        "sh -c 'cd $place; sh x'",
        "sh <<END\n. ./environment\nEND\n",
        "env PATH=/b sh -c 'PATH=/b x y'",
        "sh x" + " y" * MAX_WORDS,
        "true; " * MAX_WORDS + "sh x",
        "eval " + " ".join("'true " + "x'" for _ in range(MAX_LINES + 1)),
    ],
)
def test_a_line_that_cannot_be_followed_says_so(line: str) -> None:
    found = directories(line, "/a")
    assert not found.are_all
    assert len(found.paths) <= MAX_DIRECTORIES
