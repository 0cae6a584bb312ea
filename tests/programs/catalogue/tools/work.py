"""Build tools and others at work: no claim is ever right, whatever they print."""

from tests.programs.catalogue.program import asks, ends, runs, scripted, works

_C = {
    "a.c": "#include <stdio.h>\n"
    + "".join(f"int f{n}(int x) {{ return x * {n} + (x >> 3); }}\n" for n in range(1500))
    + "int main(void) { return 0; }\n"
}
_MAKE = {"Makefile": 'all: a b c\na b c:\n\t@printf "Building $@? "; sleep 0.5; touch $@\n'}
EVERYDAY = (
    runs("sleep", "sleep 1", ends()),
    scripted("sleep after a question", 'printf "Overwrite? [y/N] "; sleep 1', ends()),
    scripted("make -j", 'true; for i in 1 2 3; do printf "Building $i? "; sleep 0.5; done', ends()),
    scripted(
        "tar of many files",
        (
            'for i in $(seq 300); do head -c 100000 /dev/urandom > f$i; done; printf "Pack '
            'all? "; tar czf all.tgz f*; tar xzf all.tgz'
        ),
        ends(),
    ),
    scripted(
        "dd",
        (
            'printf "Wipe disk: "; dd if=/dev/zero of=z bs=1M count=300 2>/dev/null; sync '
            "z; dd if=/dev/urandom of=z bs=1M count=100 status=progress"
        ),
        ends(),
    ),
    scripted("sort", 'printf "Password: "; seq 400000 | shuf | sort -n | tail -1', ends()),
    scripted("a pipeline", 'printf "$ "; seq 1000000 | gzip -9 | gunzip | md5sum', ends()),
    scripted(
        "find and xargs",
        (
            'printf "Delete? "; find /usr/share/doc -type f 2>/dev/null | head -3000 | '
            "xargs md5sum | tail -1"
        ),
        ends(),
    ),
    scripted("xargs -p", "echo one | xargs -p -n1 echo", asks("?...", "y\n"), ends()),
    scripted("rm -i", "touch a b; rm -i a b", asks("'a'? ", "y\n"), asks("'b'? ", "n\n"), ends()),
    scripted("rm -I", "touch a b c d; rm -I a b c d", asks("arguments? ", "y\n"), ends()),
    scripted("cp -i", "echo 1 > a; echo 2 > b; cp -i a b", asks("'b'? ", "n\n"), ends(None)),
    scripted(
        "patch that cannot know",
        "echo x > f; printf -- '--- nofile\\n+++ nofile\\n@@ -1 +1 @@\\n-x\\n+y\\n' | patch",
        asks("File to patch: ", "\n"),
        asks("Skip this patch? [y] ", "y\n"),
        ends(1),
        needs="patch",
    ),
    scripted("a job in the background", '(sleep 0.7; echo done) & printf "Wait: "; wait', ends()),
    scripted(
        "a coprocess",
        'coproc { sleep 0.8; echo x; }; printf "Name: "; read -ru "${COPROC[0]}" x',
        ends(),
    ),
    scripted("timeout", 'timeout 1 bash -c "printf \\"Sure? \\"; sleep 9"', ends(124)),
    runs(
        "python that computes",
        (
            '/usr/bin/python3 -c \'import time; print("Password: ", end="", flush=True); t '
            "= time.time()\nwhile time.time() - t < 1: pass'"
        ),
        ends(),
    ),
    runs(
        "node that waits",
        "node -e \"process.stdout.write('Name? '); setTimeout(() => 0, 1000)\"",
        ends(),
    ),
    runs(
        "watch",
        "timeout --foreground 2 watch -n1 date",
        works("Every", 1.0),
        ends(None),
        needs="watch",
    ),
    runs("tail -f", "timeout --foreground 1.5 tail -f log", ends(None), files={"log": "a\nName: "}),
)
ALL = (
    runs("gcc", "gcc -O2 -o a a.c", ends(), files=_C),
    runs("make", "make", ends(), files=_MAKE),
    runs("make -j3", "make -j3", ends(), files=_MAKE),
    scripted(
        "xz", 'head -c 4000000 /dev/urandom > f; printf "Pack? "; xz -1 f', ends(), needs="xz"
    ),
    scripted("pv", "head -c 30M /dev/zero | pv -L 20M > /dev/null", ends(), needs="pv"),
    scripted(
        "parallel", "seq 6 | parallel -j2 'printf \"{}? \"; sleep 0.3'", ends(), needs="parallel"
    ),
    scripted(
        "gcc after a question",
        'printf "Compile? (y/n) "; gcc -O3 -c a.c',
        ends(),
        needs="gcc",
        files=_C,
    ),
    scripted(
        "flock",
        'flock lock sleep 1 & sleep 0.1; printf "Name: "; flock lock true',
        ends(),
        needs="flock",
    ),
    scripted(
        "npm at work",
        'printf "Install? "; npm --version > /dev/null; npm ls > /dev/null',
        ends(None),
        needs="npm",
    ),
    scripted(
        "java that compiles",
        'printf "class A { }" > A.java; printf "Compile? "; javac A.java',
        ends(),
        needs="javac",
    ),
    scripted(
        "openssl at work",
        'printf "Enter: "; openssl speed -seconds 1 -bytes 64 sha256 2>/dev/null | tail -1',
        ends(),
        needs="openssl",
    ),
    scripted(
        "tqdm",
        "{python}/python -c 'import time, tqdm\nfor _ in tqdm.tqdm(range(12)): time.sleep(0.1)'",
        ends(),
    ),
    scripted(
        "rich at work",
        (
            "{python}/python -c 'import time\nfrom rich.progress import track\n"
            'for _ in track(range(12), description="Name?"): time.sleep(0.1)\''
        ),
        ends(),
    ),
    scripted(
        "alive_progress",
        (
            "{python}/python -c 'import time\nfrom alive_progress import alive_bar\n"
            "with alive_bar(12) as bar:\n for _ in range(12): time.sleep(0.1); bar()'"
        ),
        ends(),
    ),
    scripted(
        "yaspin",
        (
            '{python}/python -c \'import time, yaspin\nwith yaspin.yaspin(text="Name? "): '
            "time.sleep(1.2)'"
        ),
        ends(),
    ),
    scripted("strace at work", "strace -o t sleep 1", ends(), needs="strace"),
    scripted(
        "tclsh that waits",
        "echo 'puts -nonewline {Go? }; flush stdout; after 900' | tclsh",
        ends(),
        needs="tclsh",
    ),
    scripted(
        "perl that waits for a child",
        'perl -e \'$|=1; print "Name: "; system("sleep 1")\'',
        ends(),
        needs="perl",
    ),
    scripted(
        "ruby that waits for a thread",
        "ruby -e '$stdout.sync = true; print \"Name: \"; Thread.new { sleep 1 }.join'",
        ends(),
        needs="ruby",
    ),
    scripted(
        "erl that waits",
        "erl -noshell -eval 'io:format(\"Name: \"), timer:sleep(1000), halt().'",
        ends(),
        needs="erl",
    ),
    scripted(
        "java that sleeps",
        "java S.java",
        ends(),
        needs="java",
        files={
            "S.java": (
                "class S { public static void main(String[] a) throws Exception { "
                'System.out.print("Name: "); System.out.flush(); Thread.sleep(1000); } }\n'
            )
        },
    ),
    scripted("php that sleeps", "php -r 'echo \"Name: \"; sleep(1);'", ends(), needs="php"),
    scripted(
        "guile that sleeps",
        "guile --no-auto-compile -c '(display \"Name: \") (force-output) (sleep 1)'",
        ends(),
        needs="guile",
    ),
)
