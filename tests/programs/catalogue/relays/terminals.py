"""Programs on a terminal of their own: multiplexers, recorders, wrappers, other users."""

from tests.programs.catalogue.program import asks, ends, runs, scripted, shows, works

_QUESTION = "sleep 0.3; read -p 'Name: ' x; sleep 0.3"
_TMUX = "tmux -f /dev/null -S {home}/socket"
EVERYDAY = (
    runs("script", f'script -qc "{_QUESTION}" /dev/null', asks("Name: ", "a\n"), ends()),
    runs(
        "script with a shell",
        "script -q /dev/null -c 'bash --norc'",
        asks("t$ ", "sleep 0.4\n", "shell"),
        asks("t$ ", "exit\n", "shell"),
        ends(),
        env={"PS1": "t$ "},
    ),
    runs(
        "expect and interact",
        f'expect -c "spawn -noecho bash -c {{{_QUESTION}}}; interact"',
        asks("Name: ", "a\n"),
        ends(),
        needs="expect",
    ),
    runs(
        "expect that answers itself",
        (
            'expect -c "spawn -noecho bash -c {sleep 0.5; read -p Name: x; sleep 0.5}; '
            'expect Name:; send a\\\\r; expect eof"'
        ),
        ends(),
        needs="expect",
    ),
    runs("setsid -w", f'setsid -w bash -c "{_QUESTION}"', asks("Name: ", "a\n"), ends()),
    runs("nohup", f'nohup bash -c "{_QUESTION}"', ends(None)),
    runs("nice and env", f'nice env A=1 bash -c "{_QUESTION}"', asks("Name: ", "a\n"), ends()),
    runs(
        "timeout --foreground",
        f'timeout --foreground 60 bash -c "{_QUESTION}"',
        asks("Name: ", "a\n"),
        ends(),
    ),
    runs("stdbuf", f'stdbuf -o0 bash -c "{_QUESTION}"', asks("Name: ", "a\n"), ends()),
    runs(
        "tee", f'bash -c "({_QUESTION}) 2>&1 | tee log"', asks("Name: ", "a\n"), ends(), needs="tee"
    ),
    runs(
        "su -c",
        f'su {{user}} -c "{_QUESTION}"',
        asks("Name: ", "a\n"),
        ends(),
        whom="root",
        needs="su",
    ),
    runs(
        "runuser",
        f'runuser -u {{user}} -- bash -c "{_QUESTION}"',
        asks("Name: ", "a\n"),
        ends(),
        whom="root",
    ),
    runs(
        "setpriv",
        f'setpriv --reuid nobody --clear-groups bash -c "{_QUESTION}"',
        asks("Name: ", "a\n"),
        ends(),
        whom="root",
    ),
    runs(
        "sudo -u",
        f'sudo -u {{user}} bash -c "{_QUESTION}"',
        asks("Name: ", "a\n"),
        ends(),
        whom="root",
    ),
    runs(
        "sudo with a question of its own",
        f'sudo bash -c "{_QUESTION}"',
        asks("Name: ", "a\n"),
        ends(),
        whom="root",
    ),
    runs(
        "unshare",
        f'unshare -pf --mount-proc bash -c "{_QUESTION}"',
        asks("Name: ", "a\n"),
        ends(),
        whom="root",
    ),
    runs("chroot", f'chroot / bash -c "{_QUESTION}"', asks("Name: ", "a\n"), ends(), whom="root"),
    runs("flock", f'flock lock bash -c "{_QUESTION}"', asks("Name: ", "a\n"), ends()),
    runs(
        "xargs -o",
        "bash -c 'echo text | xargs -o vim -u NONE'",
        shows("~", ":q!\r", "screen"),
        ends(),
        needs="vim",
    ),
    runs(
        "tmux",
        f"{_TMUX} new bash --norc",
        shows(r"t\$ ", "sleep 0.4\r", "screen"),
        shows("sleep 0.4.*t\\$ ", "exit\r", "screen"),
        ends(),
        env={"PS1": "t$ "},
        needs="tmux",
    ),
    runs(
        "tmux with a program",
        f'{_TMUX} new "{_QUESTION}"',
        shows("Name: ", "a\r", "screen"),
        ends(),
        needs="tmux",
    ),
    runs(
        "screen",
        "screen -c /dev/null bash --norc",
        shows(r"t\$ ", "exit\r", "screen"),
        ends(),
        env={"PS1": "t$ ", "SCREENDIR": "{home}/.screen"},
        first="mkdir -m 700 .screen",
        needs="screen",
    ),
)
ALL = (
    runs("tmux that works", f'{_TMUX} new "printf Name:; sleep 1.5"', ends(), needs="tmux"),
    runs(
        "tmux with a vi",
        f"{_TMUX} new vim -u NONE",
        shows("~", ":q\r", "screen"),
        ends(),
        needs="tmux vim",
    ),
    runs("dtach", f'dtach -c socket bash -c "{_QUESTION}"', asks("Name: ", "a\n"), ends()),
    runs(
        "unbuffer -p",
        # It switches the echo of both terminals off: nothing shows what is typed.
        f'unbuffer -p bash -c "{_QUESTION}"',
        asks("Name: ", "a\n", "secret"),
        ends(),
        needs="unbuffer",
    ),
    runs("rlwrap", f'rlwrap bash -c "{_QUESTION}"', asks("Name: ", "a\n"), ends()),
    runs(
        "socat",
        'socat - \'EXEC:"bash --norc -c \\"read -p Name: x; sleep 0.3\\"",pty,setsid,ctty\'',
        asks("Name:", "a\n", "line|key"),
        ends(),
    ),
    runs(
        "python's pty",
        (
            '/usr/bin/python3 -c \'import pty; pty.spawn(["bash", "-c", "read -p Name: x; '
            "sleep 0.3\"])'"
        ),
        asks("Name:", "a\n"),
        ends(),
    ),
    runs(
        "pexpect's interact",
        (
            '{python}/python -c \'import pexpect; pexpect.spawn("bash", ["-c", "read -p '
            "Name: x; sleep 0.3\"]).interact()'"
        ),
        asks("Name:", "a\n"),
        ends(),
    ),
    runs("watch -g", "watch -n1 -g true", works("Every", 1.5), needs="watch"),
    runs(
        "screen that works",
        "screen -c /dev/null bash -c 'printf Name:; sleep 1.5'",
        ends(),
        env={"SCREENDIR": "{home}/.screen"},
        first="mkdir -m 700 .screen",
        needs="screen",
    ),
    runs(
        "ts",
        "bash -c '(sleep 0.3; echo x) | ts; read -p \"Name: \" x'",
        asks("Name: ", "a\n"),
        ends(),
        needs="ts",
    ),
    runs(
        "vipe",
        "bash -c 'echo text | EDITOR=\"vim -u NONE\" vipe'",
        shows("text", ":q\r", "screen"),
        ends(),
        needs="vipe vim",
    ),
    scripted("at the end of a here document", "cat <<X\nName:\nX\nsleep 1", ends()),
)
