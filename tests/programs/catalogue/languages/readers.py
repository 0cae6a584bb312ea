"""Threads, loops and polls that read the keyboard, in one language after the other."""

from tests.programs.catalogue.program import Program, Step, asks, ends, runs, works

_TWO = (asks("Name: ", "ann\n"), asks("Age? ", "4\n"), ends())


def _js(name: str, code: str, *steps: Step) -> Program:
    return runs(name, "node app", *steps, files={"app": code})


EVERYDAY = (
    _js(
        "lines of node, one after the other",
        "const rl = require('readline').createInterface({input: process.stdin,\n"
        "  output: process.stdout, prompt: '> '})\n;(async () => { rl.prompt();\n"
        "for await (const l of rl) { await new Promise(f => setTimeout(f, 1300));\n"
        "if (l === 'quit') process.exit(0); rl.prompt() } })()\n",
        asks("> ", "a\n"),
        asks("> ", "quit\n"),
        ends(),
    ),
    _js(
        "a question of node with a limit of time",
        "const rl = require('readline').createInterface({input: process.stdin,\n"
        "  output: process.stdout})\nrl.question('Name? ', {signal: AbortSignal.timeout(9000)},\n"
        "  () => { rl.close(); setTimeout(() => process.exit(0), 1200) })\n",
        asks("Name? ", "a\n"),
        ends(),
    ),
    _js(
        "a program of node that asks for itself",
        "require('child_process').spawnSync('bash', ['-c', 'sleep 1; read -p \"Sure? \" x; "
        "sleep 1'], {stdio: 'inherit'})\nprocess.stdout.write('Once more? ');\n"
        "require('fs').readSync(0, Buffer.alloc(9))\n",
        asks("Sure? ", "y\n"),
        asks("Once more? ", "y\n"),
        ends(),
    ),
    runs(
        "select of perl",
        "perl app",
        *_TWO,
        files={
            "app": "use IO::Select; $| = 1; $s = IO::Select->new(\\*STDIN); print 'Name: '; "
            "$s->can_read; <STDIN>; sleep 1; print 'Age? '; $s->can_read(30); <STDIN>;"
        },
    ),
)
ALL = (
    _js(
        "node that waits for a program",
        "process.stdout.write('Overwrite? '); require('child_process').execSync('sleep 3')\n",
        works("Overwrite", 2.5),
        ends(),
    ),
    _js(
        "node with a worker that computes",
        "const {Worker} = require('worker_threads')\nprocess.stdout.write('Continue? ')\n"
        "new Worker('const e = Date.now() + 3000; while (Date.now() < e);', {eval: true})\n",
        works("Continue", 2.5),
        ends(),
    ),
    _js(
        "node that connects, and the keyboard",
        "process.stdin.resume(); const n = require('net'); const s = n.createServer();\n"
        "s.listen(0, '127.0.0.1', () => { const c = n.connect({host: '10.255.255.1', port: 9,\n"
        "  signal: AbortSignal.timeout(2500)}); c.on('error', () => process.exit(0)) })\n",
        works("", 2.0),
        ends(),
    ),
    runs(
        "java with a thread that reads",
        "java T.java",
        *_TWO,
        files={
            "T.java": "import java.util.concurrent.*; class T { public static void "
            "main(String[] a) "
            "throws Exception { var q = new LinkedBlockingQueue<String>(); var t = new "
            "Thread(() -> { "
            "try { var r = new java.io.BufferedReader(new java.io.InputStreamReader(System.in)); "
            "for (String l; (l = r.readLine()) != null; ) q.put(l); } catch (Exception e) {} }); "
            't.setDaemon(true); t.start(); System.out.print("Name: "); System.out.flush(); '
            "q.take(); "
            'Thread.sleep(1300); System.out.print("Age? "); System.out.flush(); q.take(); } }\n'
        },
        needs="java",
    ),
    runs(
        "ruby with a thread that reads",
        "ruby app",
        *_TWO,
        files={
            "app": "$stdout.sync = true; q = Queue.new; Thread.new { while l = gets; q << l; "
            "end }\n"
            "print 'Name: '; q.pop; sleep 1.3; print 'Age? '; q.pop\n"
        },
    ),
    runs(
        "IO.select of ruby",
        "ruby app",
        *_TWO,
        files={
            "app": "$stdout.sync = true; print 'Name: '; IO.select([$stdin]); gets; sleep 1.3\n"
            "print 'Age? '; IO.select([$stdin], nil, nil, 30); gets\n"
        },
    ),
    runs(
        "an event of tcl",
        "tclsh app",
        *_TWO,
        files={
            "app": "proc say t {puts -nonewline $t; flush stdout}\nfileevent stdin readable "
            "{gets stdin x; set got 1}\nsay {Name: }; vwait got; after 1200; say {Age? }; vwait "
            "got\n"
        },
        needs="tclsh",
    ),
    runs(
        "stream_select of php",
        "php app",
        *_TWO,
        files={
            "app": "<?php function f() { $r = [STDIN]; $w = $e = null; "
            "stream_select($r, $w, $e, null); fgets(STDIN); }\n"
            "echo 'Name: '; f(); sleep(1); echo 'Age? '; f();"
        },
        needs="php",
    ),
)
