"""Programs of Python and bash that take input in ways that are seldom seen, or only seem to."""

from tests.programs.catalogue.program import Program, Step, asks, ends, runs, scripted, shows, works

_ASYNC = """\
import asyncio, os, subprocess, sys, time
def say(text):
    sys.stdout.write(text)
    sys.stdout.flush()
async def reader():
    found = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(found), os.fdopen(os.dup(0)))
    return found
"""
_PY = """\
import ctypes, os, queue, select, signal, socket, subprocess, sys, termios, threading, time, tty
def say(text):
    sys.stdout.write(text)
    sys.stdout.flush()
"""
_TWO = (asks("Name: ", "ann\n"), asks("Age? ", "4\n"), ends())
_BLOCKED = """\
server = socket.create_server(("127.0.0.1", 0), backlog=0)
full = [socket.socket() for _ in range(4)]
for each in full:
    each.setblocking(False)
    each.connect_ex(server.getsockname())
time.sleep(.1)
"""


def _py(name: str, code: str, *steps: Step, **more: str) -> Program:
    return runs(name, "/usr/bin/python3 app", *steps, files={"app": _PY + code}, **more)


def _async(name: str, code: str, *steps: Step) -> Program:
    text = _ASYNC + "async def main():\n" + code + "asyncio.run(main())\nos._exit(0)\n"
    return runs(name, "/usr/bin/python3 app", *steps, files={"app": text})


EVERYDAY = (
    _async(
        "a stream of asyncio",
        "    lines = await reader()\n    say('Name: '); await lines.readline()\n"
        "    await asyncio.sleep(1.3)\n    say('Age? '); await lines.readline()\n",
        *_TWO,
    ),
    _py(
        "a connection that is being made",
        _BLOCKED
        + "poll = select.poll()\npoll.register(0, 1)\npoll.register(full[-1], select.POLLOUT)\n"
        "if os.fork() == 0:\n    time.sleep(2.2); os.kill(os.getppid(), 9)\n"
        "    os._exit(0)\npoll.poll()\n",
        works("", 1.8),
        ends(None),
    ),
    _async(
        "input() of asyncio in a thread",
        "    loop = asyncio.get_running_loop()\n"
        "    await loop.run_in_executor(None, input, 'Name: ')\n    await asyncio.sleep(1.3)\n"
        "    await loop.run_in_executor(None, input, 'Age? ')\n",
        *_TWO,
    ),
    _py(
        "a queue that a thread fills",
        "lines = queue.Queue()\ndef take():\n    for each in sys.stdin: lines.put(each)\n"
        "threading.Thread(target=take, daemon=True).start()\n"
        "say('Name: '); lines.get(); time.sleep(1.2); say('Age? '); lines.get(); os._exit(0)\n",
        *_TWO,
    ),
)
ALL = (
    _async(
        "add_reader of asyncio",
        "    loop = asyncio.get_running_loop(); told = asyncio.Event()\n"
        "    def take(): os.read(0, 100); told.set()\n    loop.add_reader(0, take)\n"
        "    say('Name: '); await told.wait()\n    await asyncio.sleep(1.3); told.clear()\n"
        "    say('Age? '); await told.wait()\n",
        *_TWO,
    ),
    _async(
        "a child of asyncio",
        "    say('Continue? ')\n"
        "    await (await asyncio.create_subprocess_exec('sleep', '3')).wait()\n",
        works("Continue", 2.6),
        ends(),
    ),
    _py(
        "a queue that is looked into",
        "lines = queue.Queue()\ndef take():\n    for each in sys.stdin: lines.put(each)\n"
        "threading.Thread(target=take, daemon=True).start()\ndef get():\n    while True:\n"
        "        try: return lines.get(timeout=.1)\n        except queue.Empty: pass\n"
        "say('Name: '); get(); time.sleep(1.2); say('Age? '); get(); os._exit(0)\n",
        *_TWO,
    ),
    _py(
        "a prompt and five seconds of work",
        "say('Proceed? [y/N] ')\nend = time.monotonic() + 5\nwhile time.monotonic() < end: pass\n"
        "input()\n",
        works("Proceed", 4.0),
        asks("Proceed? [y/N] ", "y\n"),
        ends(),
    ),
    _py(
        "a prompt and five seconds of sleep",
        "say('Password: ')\ntime.sleep(5)\ninput()\n",
        works("Password", 4.0),
        asks("Password: ", "y\n", "line|secret"),
        ends(),
    ),
    _py(
        "a progress bar before a question",
        "for n in range(25):\n    say(f'\\r[{\"#\" * n:25}] {n * 4}%'); time.sleep(.08)\n"
        "input('\\nInstall? [Y/n] ')\n",
        asks("Install? [Y/n] ", "y\n"),
        ends(),
    ),
    _py(
        "questions in ten languages",
        "for each in ('Имя: ', '名前: ', '姓名\uff1a', 'Fortfahren [J/n]? ',\n"
        "  '¿Desea continuar? ',"
        "  'Nom d\u2019utilisateur : ', 'الاسم: ', 'שם: ', '이름: ', 'Czy na pewno? [t/N] '):\n"
        "    input(each); time.sleep(.4)\n",
        asks("Имя: ", "a\n"),
        asks("名前: ", "a\n"),
        asks("姓名\uff1a", "a\n"),
        asks("Fortfahren [J/n]? ", "a\n"),
        asks("¿Desea continuar? ", "a\n"),
        asks("Nom d\u2019utilisateur : ", "a\n"),
        asks("الاسم: ", "a\n"),
        asks("שם: ", "a\n"),
        asks("이름: ", "a\n"),
        asks("Czy na pewno? [t/N] ", "a\n"),
        ends(),
    ),
    _py(
        "secrets in four languages",
        "import getpass\n"
        "for each in ('Пароль: ', 'パスワード: ', 'Mot de passe : ', '密码\uff1a'):\n"
        "    getpass.getpass(each); time.sleep(.4)\n",
        *(
            asks(text, "a\n", "secret")
            for text in ("Пароль: ", "パスワード: ", "Mot de passe : ", "密码\uff1a")
        ),
        ends(),
    ),
    scripted(
        "the terminal behind a pipe",
        'echo x | { sleep 0.3; read -rp "Really? " y < /dev/tty; sleep 1; }',
        asks("Really? ", "y\n"),
        ends(),
    ),
    runs(
        "perl at the terminal behind a pipe",
        "bash -c 'echo x | perl ask'",
        asks("Go? ", "y\n"),
        asks("Sure? ", "y\n"),
        ends(),
        files={
            "ask": "$| = 1; open T, '<', '/dev/tty'; print 'Go? '; <T>; sleep 2; "
            "print 'Sure? '; <T>;"
        },
    ),
    scripted(
        "a job that reports after the prompt",
        '(sleep 1; echo; echo finished) & read -rp "Name: " x; wait; sleep 0.3; read -rp "Age? " y',
        asks("Name: ", "ann\n"),
        asks("Age? ", "4\n"),
        ends(),
    ),
    scripted(
        "a coprocess that answers",
        'coproc { while read -r l; do sleep 1.2; echo "<$l>"; done; }; '
        'for n in 1 2; do read -rp "$n: " x; echo "$x" >&"${COPROC[1]}"; '
        'read -r y <&"${COPROC[0]}"; echo "$y"; done',
        asks("1: ", "a\n"),
        asks("2: ", "b\n"),
        ends(None),
    ),
    scripted(
        "a select of many columns",
        'PS3="Take one: "; COLUMNS=60; select x in {a..z} leave; do sleep 1; '
        "[ $x = leave ] && break; done",
        asks("Take one: ", "3\n"),
        asks("Take one: ", "27\n"),
        ends(),
    ),
    scripted(
        "a here document and a pause",
        "cat <<X\nName: \nX\nprintf 'Next? '; sleep 3",
        works("Next", 2.6),
        ends(),
    ),
    _py(
        "short polls of the keyboard",
        "tty.setcbreak(0); say('Press q to quit ')\n"
        "while not select.select([0], [], [], .05)[0]: pass\nos.read(0, 1)\n",
        asks("Press q to quit ", "q", "key"),
        ends(),
    ),
    scripted(
        "reads with a limit of time in the terminal",
        'stty -icanon min 0 time 3; printf "Key? "; while :; do x=$(dd bs=1 count=1 2>/dev/null); '
        '[ "$x" ] && break; done; stty sane',
        asks("Key? ", "q", "key|line"),
        ends(),
    ),
    _py(
        "a pidfd and the keyboard",
        "pid = os.fork()\nif pid == 0:\n    time.sleep(2.5); os._exit(0)\n"
        "select.select([0, os.pidfd_open(pid)], [], [])\n",
        works("", 2.0),
        ends(),
    ),
    _py(
        "a server that listens, and the keyboard",
        "server = socket.create_server(('127.0.0.1', 0))\nif os.fork() == 0:\n"
        "    os.setsid(); time.sleep(2.5); socket.create_connection(server.getsockname())\n"
        "    os._exit(0)\nselect.select([0, server], [], [])\n",
        works("", 2.0),
        ends(),
    ),
    runs(
        "strace of a program with questions",
        'strace -f -o /dev/null bash -c \'read -p "Name: " x; sleep 1; read -p "Age? " y\'',
        *_TWO,
    ),
    scripted(
        "cat into tr",
        "cat | tr a-z A-Z",
        shows("", "abc\n", "line"),
        shows("abc\r\n", "\x04", "line"),
        ends(),
    ),
    runs(
        "unbuffer of a program at work",
        "unbuffer bash -c 'printf \"Go on? [y/N] \"; sleep 3'",
        works("Go on", 2.5),
        ends(),
        needs="unbuffer",
    ),
    runs(
        "script around questions",
        "script -qfc 'bash -c \"read -p Name:\\  x; sleep 1.2; read -p Age?\\  y\"' /dev/null",
        *_TWO,
        needs="script",
    ),
    runs(
        "expect that logs in, and then works",
        "expect app",
        works("Password", 2.0),
        ends(),
        files={
            "app": "spawn bash -c {read -sp Password:\\  x; sleep 2.5}\nexpect {Password: }\n"
            "send x\\n\nexpect eof\n"
        },
    ),
    runs(
        "screen in tmux",
        'tmux -L {free} new bash --norc -c \'read -p "Name: " x; sleep 2; read -p "Age? " y\'',
        shows("Name: ", "ann\n", "line|screen"),
        shows("Age. ", "4\n", "line|screen"),
        ends(None),
        needs="tmux",
    ),
    _py(
        "a second terminal that is read",
        "m, s = os.openpty()\nif os.fork() == 0:\n    time.sleep(3); os.write(m, b'x\\n'); "
        "os._exit(0)\nsay('Name: '); os.read(s, 9)\n",
        works("Name", 2.0),
        ends(),
    ),
    _py(
        "curses with a half delay",
        "import curses\ndef main(s):\n    curses.halfdelay(3); s.addstr(5, 5, 'Press a key: ')\n"
        "    while s.getch() < 0: pass\n    s.addstr(7, 5, 'Working'); s.refresh(); time.sleep(2)\n"
        "curses.wrapper(main)\n",
        shows("Press a key: ", "x"),
        ends(),
    ),
    _py(
        "curses with a line of input",
        "import curses\ndef main(s):\n    curses.echo(); s.addstr(5, 5, 'Name: '); s.getstr()\n"
        "    s.addstr(7, 5, 'Working'); s.refresh(); time.sleep(2)\n    s.getch()\n"
        "curses.wrapper(main)\n",
        shows("Name: ", "x\n"),
        shows("Working", "x"),
        ends(),
    ),
    _py(
        "a question that is typed ahead",
        "time.sleep(1)\ninput('Name: '); time.sleep(1); input('Age? ')\n",
        works("", 0.6),
        asks("Name: ", "ann\n4\n"),
        ends(),
    ),
    _py(
        "a child that was stopped and goes on",
        "if os.fork() == 0:\n    time.sleep(1); os.kill(os.getppid(), signal.SIGCONT); "
        "os._exit(0)\n"
        "say('Name: '); os.kill(os.getpid(), signal.SIGSTOP); time.sleep(1.5); input()\n",
        works("Name", 1.3),
        asks("Name: ", "a\n"),
        ends(),
    ),
    _py(
        "an alarm that goes off beside a question",
        "signal.signal(signal.SIGALRM, lambda *_: None); signal.setitimer(0, .5, .5)\n"
        "input('Name: '); time.sleep(1.2); input('Age? ')\n",
        *_TWO,
    ),
)
