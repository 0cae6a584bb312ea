"""Git and other version control, with questions, editors and pagers."""

from tests.programs.catalogue.program import asks, ends, runs, scripted, shows

_ENV = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_PAGER": "less",
    "LESS": "FRX",
}
_REPO = (
    "git init -q . && seq 40 > n && git add n && git commit -qm one && seq 2 40 | sed "
    "s/39/x/ > n && seq 90 > m"
)
_HUNK = "Stage this hunk [y,n,q,a,d,j,J,g,/,e,?]? "
EVERYDAY = (
    runs(
        "git add -p",
        "git add -p",
        asks("Stage this hunk [y,n,q,a,d,j,J,g,/,e,?]? ", "y\n"),
        asks("Stage this hunk [y,n,q,a,d,K,g,/,e,?]? ", "q\n"),
        ends(),
        first=_REPO,
        env=_ENV,
    ),
    runs(
        "git add -i",
        "git add -i",
        asks("What now> ", "u\n"),
        asks("Update>> ", "1\n"),
        asks("Update>> ", "\n"),
        asks("What now> ", "q\n"),
        ends(),
        first=_REPO,
        env=_ENV,
    ),
    runs(
        "git clean -i",
        "git clean -i",
        asks("What now> ", "4\n"),
        asks("Remove m [y/N]? ", "y\n"),
        ends(),
        first=_REPO,
        env=_ENV,
    ),
    runs(
        "git commit with vim",
        "git commit -a",
        shows("Please enter the commit", "imessage\x1b", "screen"),
        shows("", ":wq\r", "screen"),
        ends(),
        first=_REPO,
        env={**_ENV, "GIT_EDITOR": "vim -u NONE"},
        needs="git vim",
    ),
    runs(
        "git rebase -i with nano",
        "git rebase -i HEAD~1",
        shows("Exit.*pick", "\x18", "screen"),
        ends(),
        first=_REPO + " && git commit -qam two",
        env={**_ENV, "GIT_EDITOR": "nano -I"},
        needs="git nano",
    ),
    runs(
        "git log",
        "git log -p",
        shows(":", " ", "key|screen"),
        shows("", "q", "key|screen"),
        ends(),
        first=_REPO + " && git add . && git commit -qam two",
        env={**_ENV, "LESS": "R"},
        needs="git less",
    ),
    runs(
        "git with a username",
        "bash -c 'git credential fill < q'",
        asks("Username for 'http://127.0.0.1': ", "me\n"),
        asks("Password for 'http://me@127.0.0.1': ", "x\n", "secret"),
        ends(),
        first="git init -q . && printf 'protocol=http\\nhost=127.0.0.1\\n\\n' > q",
        env=_ENV,
    ),
    scripted(
        "git at work",
        (
            "git init -q . && for i in $(seq 30); do seq $((i*3000)) > f$i; done; echo -n "
            '"Add all? "; git add . && git commit -qm all && git gc -q'
        ),
        ends(),
        env=_ENV,
        needs="git",
    ),
)
ALL = (
    runs(
        "git checkout -p",
        "git checkout -p",
        asks("Discard this hunk from worktree [y,n,q,a,d,j,J,g,/,e,?]? ", "q\n"),
        ends(),
        first=_REPO,
        env=_ENV,
    ),
    runs(
        "git stash -p",
        "git stash -p",
        asks("Stash this hunk [y,n,q,a,d,j,J,g,/,e,?]? ", "q\n"),
        ends(None),
        first=_REPO,
        env=_ENV,
    ),
    runs(
        "git rebase -i with ed",
        "git rebase -i HEAD~1",
        shows(r"\d+\r\n", "w\n", "line"),
        shows(r"\d+\r\n", "q\n", "line"),
        ends(),
        first=_REPO + " && git commit -qam two",
        env={**_ENV, "GIT_EDITOR": "ed"},
        needs="git ed",
    ),
    runs(
        "git bisect's command at work",
        "git bisect run sleep 1",
        ends(None),
        first=_REPO + " && git commit -qam two && git bisect start -q HEAD HEAD~1",
        env=_ENV,
    ),
    runs("tig", "tig", shows("one", "q", "screen"), ends(), first=_REPO, env=_ENV, needs="git tig"),
    runs(
        "hg commit -i",
        "hg commit -i -u a -m one --config ui.interface=text",
        asks("(enter ? for help) [Ynesfdaq?] ", "y\n"),
        asks("(enter ? for help) [Ynesfdaq?] ", "q\n"),
        ends(None),
        first="hg init . && seq 9 > n && hg add n",
    ),
    runs(
        "hg with curses",
        "hg commit -i -u a -m one --config ui.interface=curses",
        shows("Select hunks", "q", "screen"),
        ends(None),
        first="hg init . && seq 9 > n && hg add n",
    ),
    runs("svn with a password", "svn ls --no-auth-cache svn://127.0.0.1:1", ends(None)),
    runs("fossil at work", "fossil init x.fossil", ends(), env={"USER": "a"}),
    runs(
        "hg at work",
        (
            "bash -c 'hg init . && for i in 1 2 3 4 5 6; do seq 90000 > f$i; done; echo -n "
            '"Sure? "; hg -q add && hg commit -u a -m x\''
        ),
        ends(),
        needs="hg",
    ),
)
