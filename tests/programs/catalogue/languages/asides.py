"""Readers beside timers, children and pools, in Python, node, perl and bash."""

from tests.programs.catalogue.program import Program, Step, asks, ends, runs, scripted, shows, works

_PY = """\
import ctypes, os, queue, select, signal, socket, subprocess, sys, termios, threading, time, tty
def say(text):
    sys.stdout.write(text)
    sys.stdout.flush()
"""
_TWO = (asks("Name: ", "ann\n"), asks("Age? ", "4\n"), ends())


def _py(name: str, code: str, *steps: Step) -> Program:
    return runs(name, "/usr/bin/python3 app", *steps, files={"app": _PY + code})


def _js(name: str, code: str, *steps: Step) -> Program:
    return runs(name, "node app", *steps, files={"app": code})


def _perl(name: str, code: str, *steps: Step) -> Program:
    return runs(name, "perl app", *steps, files={"app": code})


EVERYDAY: tuple[Program, ...] = ()
ALL = (
    _py(
        "a process pool at work after a question",
        (
            "import multiprocessing as m\nif __name__ == '__main__':\n"
            "    say('Really? ')\n    with m.Pool(2) as p: p.map(time.sleep, [2.5, 2.5])\n"
        ),
        works("Really", 2.0),
        ends(),
    ),
    _py(
        "a futures pool that asks in its thread",
        (
            "from concurrent.futures import ThreadPoolExecutor as T\n"
            "with T() as t:\n    t.submit(input, 'Name: ').result(); time.sleep(1); "
            "t.submit(input, 'Age? ').result()\n"
        ),
        *_TWO,
    ),
    _py(
        "an asyncio question beside a heartbeat",
        (
            "import asyncio\nasync def beat():\n    while True: await asyncio.sleep(.3)\n"
            "async def main():\n    t = asyncio.create_task(beat()); l = "
            "asyncio.get_running_loop(); q = asyncio.Event(); l.add_reader(0, lambda: "
            "(os.read(0, 50), q.set()))\n    say('Name: '); await q.wait(); await "
            "asyncio.sleep(1.3); q.clear(); say('Age? '); await q.wait()\n"
            "asyncio.run(main())\n"
        ),
        *_TWO,
    ),
    _py(
        "a trio-like wakeup socket and a question",
        (
            "a, b = socket.socketpair(); signal.set_wakeup_fd(a.fileno(), "
            "warn_on_full_buffer=False) if a.setblocking(False) is None else 0\n"
            "for each in ('Name: ', 'Age? '):\n    say(each); select.select([0, b], [], "
            "[]); os.read(0, 50); time.sleep(1)\n"
        ),
        *_TWO,
    ),
    _py(
        "selectors with a timeout of 100 s",
        (
            "import selectors\ns = selectors.DefaultSelector(); s.register(0, 1)\n"
            "say('Name: '); s.select(100); os.read(0, 50); time.sleep(1); say('Age? '); "
            "s.select(100); os.read(0, 50)\n"
        ),
        *_TWO,
    ),
    _py(
        "a download bar, then a question of two lines",
        (
            "for n in range(20): say(f'\\r{n*5:3}% |{\"=\"*n:20}|'); time.sleep(.06)\n"
            "print('\\nDo you want to go on?'); say('y/n: '); input(); time.sleep(1)\n"
        ),
        asks("y/n: ", "y\n"),
        ends(),
    ),
    _py(
        "a prompt below which a status is drawn",
        (
            "say('Name: \\n\\033[2K-- ready --\\033[A\\r\\033[6C'); tty.setcbreak(0); "
            "os.read(0, 1); time.sleep(.7)\n"
        ),
        shows("ready", "x", "line|key|screen"),
        ends(),
    ),
    _py(
        "work that prints questions as it goes",
        (
            "for q in ('Compile? ', 'Link: ', 'Password: ', '[y/N] ', '$ '):\n"
            "    say(q); time.sleep(.6); say('done\\n')\n"
        ),
        works("Compile", 2.6),
        ends(),
    ),
    _py(
        "a question, and a child in the background that computes",
        (
            "p = subprocess.Popen(['bash', '-c', 'e=$((SECONDS+4)); while ((SECONDS<e)); "
            "do :; done'])\ninput('Name: '); p.kill(); p.wait()\n"
        ),
        asks("Name: ", "a\n"),
        ends(),
    ),
    _py(
        "signal.pause while a child asks",
        (
            "if os.fork() == 0:\n    input('Name: '); os._exit(0)\n"
            "signal.signal(signal.SIGCHLD, lambda *a: None); signal.pause(); os.wait(); "
            "time.sleep(1); input('Age? ')\n"
        ),
        *_TWO,
    ),
    _py(
        "a parent that sleeps for a while, and a child that asks",
        (
            "pid = os.fork()\nif pid == 0:\n    input('Name: '); time.sleep(1); "
            "os._exit(0)\ntime.sleep(3600) if os.waitpid(pid, 0) is None else input('Age? "
            "')\n"
        ),
        *_TWO,
    ),
    _py(
        "getpass from a thread",
        (
            "import getpass\nt = threading.Thread(target=getpass.getpass, args=('PIN: "
            "',)); t.start(); t.join(); time.sleep(1); getpass.getpass('Again: ')\n"
        ),
        asks("PIN: ", "a\n", "secret"),
        asks("Again: ", "a\n", "secret"),
        ends(),
    ),
    _py(
        "readline with a startup hook that fills in",
        (
            "import readline\nreadline.set_startup_hook(lambda: "
            "readline.insert_text('demo')); input('Name: '); "
            "readline.set_startup_hook(None); time.sleep(.8); input('Age? ')\n"
        ),
        shows("demo", "\n", "line"),
        asks("Age? ", "4\n"),
        ends(),
    ),
    _py(
        "a child that stops itself at its read",
        (
            "pid = os.fork()\nif pid == 0:\n    os.setpgid(0, 0); os.read(0, 9); "
            "os._exit(0)\ntime.sleep(.3); os.waitpid(pid, os.WUNTRACED); say('Go on? '); "
            "time.sleep(2.2); os.kill(pid, 9)\n"
        ),
        works("Go on", 1.8),
        ends(),
    ),
    _py(
        "a daemon that keeps the terminal open",
        (
            "if os.fork() == 0:\n    if os.fork() == 0:\n"
            "        os.setsid(); time.sleep(6); os._exit(0)\n"
            "    os._exit(0)\nos.wait(); input('Name: ')\n"
            "os._exit(0)\n"
        ),
        asks("Name: ", "a\n"),
        ends(None),
    ),
    _py(
        "a mouse that is asked for",
        (
            "tty.setraw(0); say('\\033[?1049h\\033[?1003h\\033[2J\\033[5;5HClick me'); "
            "os.read(0, 9); say('\\033[?1003l\\033[?1049l')\n"
        ),
        shows("Click me", "x", "screen|key"),
        ends(),
    ),
    _py(
        "kitty keys and focus",
        (
            "tty.setraw(0); say('\\033[?1004h\\033[>1uPress a key'); os.read(0, 20); "
            "say('\\033[<u\\033[?1004l')\n"
        ),
        shows("Press a key", "x", "key"),
        ends(),
    ),
    _js(
        "node with a timer beside a question",
        (
            "const rl = require('readline').createInterface({input: process.stdin, output: "
            "process.stdout})\nsetInterval(() => {}, 250)\n"
            "rl.question('Name: ', () => setTimeout(() => rl.question('Age? ', () => "
            "process.exit(0)), 1300))\n"
        ),
        *_TWO,
    ),
    _js(
        "node with a child that asks",
        (
            "const {spawn} = require('child_process')\n"
            "spawn('bash', ['-c', 'read -p \"Name: \" x; sleep 1; read -p \"Age? \" y'], "
            "{stdio: 'inherit'}).on('exit', c => process.exit(c))\n"
        ),
        *_TWO,
    ),
    _js(
        "node with a worker that waits, and a question",
        (
            "const {Worker} = require('worker_threads')\n"
            "const w = new Worker('setInterval(() => {}, 1000)', {eval: true})\n"
            "const rl = require('readline').createInterface({input: process.stdin, output: "
            "process.stdout})\nrl.question('Name: ', () => setTimeout(() => "
            "rl.question('Age? ', () => process.exit(0)), 1300))\n"
        ),
        *_TWO,
    ),
    _js(
        "node that watches a file at a question",
        (
            "require('fs').watch('.', () => {})\nconst rl = "
            "require('readline').createInterface({input: process.stdin, output: "
            "process.stdout})\nrl.question('Name: ', () => setTimeout(() => "
            "process.exit(0), 900))\n"
        ),
        asks("Name: ", "a\n"),
        ends(),
    ),
    _js(
        "node that serves and watches keys",
        (
            "require('http').createServer().listen(0, '127.0.0.1', () => { "
            "process.stdout.write('Press q to quit '); process.stdin.setRawMode(true); "
            "process.stdin.once('data', () => process.exit(0)) })\n"
        ),
        shows("Press q to quit", "q", "key"),
        ends(),
    ),
    _js(
        "node that reads files after a question",
        (
            "process.stdout.write('Delete all? '); require('fs').readFile('/dev/zero', "
            "{signal: AbortSignal.timeout(2500)}, () => process.exit(0))\n"
        ),
        works("Delete", 1.5),
        ends(None),
    ),
    _perl(
        "perl with Term::ReadLine",
        (
            "use Term::ReadLine; $t = Term::ReadLine->new('x'); $t->readline('Name: '); "
            "sleep 1; $t->readline('Age? ');"
        ),
        *_TWO,
    ),
    _perl(
        "perl with an alarm in eval around a question",
        (
            "$| = 1; for $q ('Name: ', 'Age? ') { eval { local $SIG{ALRM} = sub { die }; "
            "alarm 60; print $q; <STDIN>; alarm 0; }; sleep 1 if $q =~ /N/ }"
        ),
        *_TWO,
    ),
    _perl(
        "perl with a pipe to a child at work",
        "$| = 1; open P, '-|', 'sleep 2.5; echo done'; print 'Continue? '; <P>; close P;",
        works("Continue", 2.0),
        ends(),
    ),
    scripted(
        "read with a limit of time of 30 s",
        'read -t 30 -p "Name: " x; sleep 1; read -t 30 -p "Age? " y',
        *_TWO,
    ),
    scripted(
        "read -e -i",
        'read -e -i demo -p "Name: " x; sleep 1; read -e -p "Age? " y',
        shows("demo", "\n", "line"),
        asks("Age? ", "4\n"),
        ends(),
    ),
    scripted(
        "a question between two pipes",
        'yes | head -c 10M | { read -rp "Go? " x < /dev/tty; sleep 1; wc -c; }',
        asks("Go? ", "y\n"),
        ends(),
    ),
    scripted(
        "a select in a subshell in a pipe",
        '{ PS3="Pick: "; select x in one two; do break; done; } 2>&1 | cat',
        asks("Pick: ", "1\n"),
        ends(),
    ),
    scripted(
        "wait -n beside a question",
        'sleep 2.5 & printf "Proceed? "; wait -n',
        works("Proceed", 2.0),
        ends(),
    ),
    scripted(
        "a fifo that a job fills",
        'mkfifo f; (sleep 2.5; echo x > f) & printf "Name: "; read y < f',
        works("Name", 2.0),
        ends(),
    ),
    scripted(
        "stty -echo and cat",
        (
            'stty -echo; printf "Secret: "; head -n1 >/dev/null; stty echo; sleep 1; '
            'printf "\nName: "; head -n1 >/dev/null'
        ),
        asks("Secret: ", "x\n", "secret"),
        asks("Name: ", "a\n"),
        ends(),
    ),
    scripted(
        "dd of one key in raw mode",
        (
            'old=$(stty -g); stty raw -echo; printf "Any key"; dd bs=1 count=1 2>/dev/null '
            '>/dev/null; stty "$old"; sleep .7'
        ),
        shows("Any key", "x", "key"),
        ends(),
    ),
)
