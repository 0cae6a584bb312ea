"""Programs that listen to the keyboard and work all the same, or wait for something else."""

from tests.programs.catalogue.program import asks, ends, runs, scripted, works

_PY = "/usr/bin/python3 app"


def py(code: str) -> dict[str, str]:
    return {"app": "import os, select, signal, subprocess, sys, threading, time\n" + code}


_SAY = "print('Name: ', end='', flush=True)\n"
EVERYDAY = (
    scripted("a FIFO", 'mkfifo f; (sleep 0.8; echo x > f) & printf "Name: "; read x < f', ends()),
    scripted(
        "a lock",
        'flock l sleep 0.9 & sleep 0.2; printf "Sure? "; flock l true',
        ends(),
        needs="flock",
    ),
    scripted(
        "a trap and wait",
        'trap "exit 0" USR1; printf "Go? "; (sleep 0.8; kill -USR1 $$) & wait',
        ends(),
    ),
    scripted(
        "a stopped child",
        (
            '(kill -STOP $BASHPID) & sleep 0.1; printf "Name: "; (sleep 0.8; kill -CONT %1 '
            "2>/dev/null; kill -CONT $!) & wait"
        ),
        ends(None),
    ),
    scripted(
        "read with a timeout of 0",
        'printf "Key? "; for i in 1 2 3 4 5; do read -t 0; sleep 0.2; done',
        ends(),
    ),
    runs(
        "a select with a clock",
        _PY,
        ends(),
        files=py(
            "for n in range(8):\n  sys.stdout.write(f'\\r{n} s'); sys.stdout.flush()\n"
            "  select.select([0], [], [], .2)\n"
        ),
    ),
    runs(
        "a child on a pipe",
        _PY,
        ends(),
        files=py(_SAY + "subprocess.run(['sleep', '1'], stdout=subprocess.PIPE)\n"),
    ),
    runs(
        "a child in a session of its own",
        _PY,
        ends(),
        files=py(_SAY + "subprocess.run(['sleep', '1'], start_new_session=True)\n"),
    ),
    runs(
        "a poll on a pipe and the keyboard",
        _PY,
        ends(),
        files=py(
            "r, w = os.pipe()\nif os.fork() == 0:\n  time.sleep(1); os.write(w, b'x'); "
            "os._exit(0)\nselect.select([0, r], [], [])\n"
        ),
    ),
    runs(
        "sigwait",
        _PY,
        ends(),
        files=py(
            _SAY
            + (
                "signal.setitimer(signal.ITIMER_REAL, 1)\n"
                "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])\n"
                "signal.sigwait([signal.SIGALRM])\n"
            )
        ),
    ),
    runs(
        "a reader that is told of the end",
        _PY,
        asks("Name: ", "a\n"),
        ends(),
        files=py(
            "def f():\n  input('Name: ')\nt = threading.Thread(target=f); t.start(); "
            "t.join(); time.sleep(.3)\n"
        ),
    ),
    runs(
        "raw mode at work",
        _PY,
        ends(),
        files=py(
            "import termios, tty\nold = termios.tcgetattr(0)\n"
            "tty.setraw(0)\nsys.stdout.write('Press any key'); sys.stdout.flush()\n"
            "time.sleep(1)\ntermios.tcsetattr(0, 0, old)\n"
        ),
    ),
    runs(
        "a queue of processes",
        _PY,
        ends(),
        files=py(
            "import multiprocessing as m\ndef f(q): time.sleep(1); q.put(1)\n"
            "if __name__ == '__main__':\n  q = m.Queue()\n"
            "  m.Process(target=f, args=(q,)).start()\n"
            "  print('Name: ', end='', flush=True)\n  q.get()\n"
        ),
    ),
    runs(
        "a socket of its own child",
        _PY,
        ends(),
        files=py(
            (
                "import socket\na, b = socket.socketpair()\nif os.fork() == 0:\n"
                "  time.sleep(1); b.send(b'x'); os._exit(0)\n"
            )
            + _SAY
            + "a.recv(1)\n"
        ),
    ),
    runs("script that works", "script -qc 'printf \"Go on? [y/N] \"; sleep 1.2' /dev/null", ends()),
    runs(
        "node with a child",
        "node -e \"process.stdout.write('Name? '); require('child_process').exec('sleep 1')\"",
        ends(),
    ),
    runs(
        "node with a timer and the keyboard",
        'node -e "process.stdin.resume(); setTimeout(() => process.exit(0), 1200)"',
        ends(),
    ),
    runs(
        "asyncio with a timer",
        _PY,
        ends(),
        files=py(
            "import asyncio\nasync def main():\n  "
            "asyncio.get_running_loop().add_reader(0, lambda: None)\n"
            "  await asyncio.sleep(1.2)\nasyncio.run(main())\n"
        ),
    ),
    runs("a dialog at work", "dialog --infobox Copying 5 30", ends()),
)
ALL = (
    scripted(
        "entr",
        "(sleep 1.2; echo x >> f) & echo f | entr -dnz true",
        ends(None),
        needs="entr",
        first="touch f",
    ),
    scripted(
        "entr and the keyboard",
        "(sleep 1.2; echo x >> f) & echo f | entr -z true",
        ends(None),
        needs="entr",
        first="touch f",
    ),
    scripted(
        "inotifywait",
        "(sleep 1; touch f) & inotifywait -q -e create .",
        ends(),
        needs="inotifywait",
    ),
    scripted(
        "inotifywait after a question",
        'printf "Name: "; (sleep 1; touch f) & inotifywait -qq -e create .',
        ends(),
        needs="inotifywait",
    ),
    runs(
        "socat at a terminal pair",
        "timeout --foreground 2 socat PTY,link=a,raw PTY,link=b,raw",
        ends(None),
        needs="socat",
    ),
    runs(
        "a spinner of ora's kind",
        (
            'node -e "let n = 0; const t = setInterval(() => { '
            "process.stdout.write('\\r' + '|/-'[n++ % 3] + ' Installing? '); if (n > 15) "
            'clearInterval(t) }, 80)"'
        ),
        ends(),
        needs="node",
    ),
    runs(
        "java with a timer",
        "java T.java",
        ends(),
        files={
            "T.java": (
                "class T { public static void main(String[] a) throws Exception { "
                'System.out.print("Name: "); System.out.flush(); '
                "java.util.concurrent.Executors.newScheduledThreadPool(1).schedule(() -> "
                "System.exit(0), 1, java.util.concurrent.TimeUnit.SECONDS).get(); } }\n"
            )
        },
        needs="java",
    ),
    runs(
        "perl with an alarm",
        "perl -e '$|=1; print \"Name: \"; $SIG{ALRM} = sub { exit 0 }; alarm 1; sleep 9'",
        ends(),
        needs="perl",
    ),
    runs(
        "tcl's event loop",
        "tclsh app",
        ends(),
        files={
            "app": "puts -nonewline {Name: }; flush stdout\nafter 1000 {set done 1}\nvwait done\n"
        },
        needs="tclsh",
    ),
    runs(
        "erlang's receive",
        "erl -noshell -eval 'io:format(\"Name: \"), receive after 1000 -> halt() end.'",
        ends(),
        needs="erl",
    ),
    runs(
        "sleepenh-like read",
        "bash -c 'read -t 1.2 -p \"Quick: \" x'",
        asks("Quick: ", "a\n"),
        ends(),
        needs="bash",
    ),
    scripted("pv that shows", "(sleep 1.2; echo) | pv -q > /dev/null", ends(), needs="pv"),
    runs(
        "less that follows",
        "timeout --foreground 2 less +F f",
        works("", 1.0),
        first="seq 100 > f",
        needs="less",
    ),
    scripted(
        "tsp",
        "export TS_SOCKET=$PWD/ts; tsp sleep 0.8 > /dev/null; printf 'Name: '; tsp -w; tsp -K",
        ends(None),
        needs="tsp",
    ),
)
