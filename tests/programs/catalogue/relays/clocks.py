"""System calls with clocks, rings, signals and children, from programs of C."""

from tests.programs.catalogue.program import Program, Step, asks, ends, runs, shows, works
from tests.programs.catalogue.relays.calls import INCLUDES

_C = (
    INCLUDES
    + """\
#include <sys/inotify.h>
static int p[2];
static void hand(int n) { if (write(p[1], "x", 1)) {} }
"""
)
_TWO = (asks("Name: ", "ann\n"), asks("Age? ", "4\n"), ends())
POLL = "struct pollfd f[2] = {{0, POLLIN}, {%s, POLLIN}}; poll(f, 2, -1);"


def _c(name: str, code: str, *steps: Step, libs: str = "") -> Program:
    ring = "#include <liburing.h>\n" if libs else ""
    files = {"a.c": _C + ring + "int main(void) {\n" + code + "\nreturn 0; }\n"}
    first = f"gcc -w -pthread -o a a.c {libs}"
    return runs(name, "./a", *steps, first=first, files=files, needs="gcc")


EVERYDAY: tuple[Program, ...] = ()
ALL = (
    _c(
        "timer of POSIX with a thread that answers, and a poll of a pipe",
        (
            'pipe(p); void t(union sigval v) { if (write(p[1], "x", 1)) {} }\n'
            "struct sigevent e = {0}; e.sigev_notify = SIGEV_THREAD; "
            "e.sigev_notify_function = t; timer_t id;\n"
            "timer_create(CLOCK_MONOTONIC, &e, &id); struct itimerspec s = {{0}, {2, "
            "500000000}}; timer_settime(id, 0, &s, 0);\n"
        )
        + POLL % "p[0]",
        works("", 2.0),
        ends(),
    ),
    _c(
        "timer of POSIX with a signal that writes to a pipe",
        (
            "pipe(p); signal(SIGUSR1, hand); struct sigevent e = {0}; e.sigev_notify = "
            "SIGEV_SIGNAL; e.sigev_signo = SIGUSR1; timer_t id;\n"
            "timer_create(CLOCK_MONOTONIC, &e, &id); struct itimerspec s = {{0}, {2, "
            "500000000}}; timer_settime(id, 0, &s, 0);\n"
            "struct pollfd f[2] = {{0, POLLIN}, {p[0], POLLIN}}; while (poll(f, 2, -1) < "
            "0);"
        ),
        works("", 2.0),
        ends(),
    ),
    _c(
        "a signal of a child in one set with the keyboard",
        (
            "sigset_t s; sigemptyset(&s); sigaddset(&s, SIGUSR1); sigprocmask(SIG_BLOCK, "
            "&s, 0); int f0 = signalfd(-1, &s, 0);\nif (!fork()) { usleep(2500000); "
            "kill(getppid(), SIGUSR1); _exit(0); }\n"
        )
        + POLL % "f0",
        works("", 2.0),
        ends(),
    ),
    _c(
        "a watched file in one set with the keyboard",
        (
            'int n = inotify_init(); inotify_add_watch(n, ".", IN_CREATE);\n'
            'if (!fork()) { setsid(); usleep(2500000); close(open("new", O_CREAT | '
            "O_WRONLY, 0600)); _exit(0); }\n"
        )
        + POLL % "n",
        works("", 2.0),
        ends(),
    ),
    _c(
        "a ring that reads a line",
        (
            "struct io_uring r; io_uring_queue_init(4, &r, 0); struct io_uring_cqe *c;\n"
            'for (int i = 0; i < 2; i++) { say(i ? "Age? " : "Name: "); struct '
            "io_uring_sqe *q = io_uring_get_sqe(&r); io_uring_prep_read(q, 0, line, 50, "
            "0);\nio_uring_submit(&r); io_uring_wait_cqe(&r, &c); io_uring_cqe_seen(&r, "
            "c); if (!i) usleep(700000); }"
        ),
        *_TWO,
        libs="-luring",
    ),
    _c(
        "a ring that reads without a prompt",
        (
            "struct io_uring r; io_uring_queue_init(4, &r, 0); struct io_uring_cqe *c; "
            'puts("ready");\nstruct io_uring_sqe *q = io_uring_get_sqe(&r); '
            "io_uring_prep_read(q, 0, line, 50, 0);\nio_uring_submit(&r); "
            "io_uring_wait_cqe(&r, &c);"
        ),
        shows("ready\r\n", "x\n", "line|key"),
        ends(),
        libs="-luring",
    ),
    _c(
        "a ring with a clock",
        (
            "struct io_uring r; io_uring_queue_init(4, &r, 0); struct io_uring_cqe *c; "
            'say("Continue? ");\nstruct __kernel_timespec t = {2, 500000000}; struct '
            "io_uring_sqe *q = io_uring_get_sqe(&r); io_uring_prep_timeout(q, &t, 0, 0);\n"
            "io_uring_submit(&r); io_uring_wait_cqe(&r, &c);"
        ),
        works("Continue", 2.0),
        ends(),
        libs="-luring",
    ),
    _c(
        "a ring that polls the keyboard",
        (
            "struct io_uring r; io_uring_queue_init(4, &r, 0); struct io_uring_cqe *c; "
            'say("Name: ");\nstruct io_uring_sqe *q = io_uring_get_sqe(&r); '
            "io_uring_prep_poll_add(q, 0, POLLIN);\nio_uring_submit(&r); "
            "io_uring_wait_cqe(&r, &c); read(0, line, 50);"
        ),
        asks("Name: ", "a\n"),
        ends(),
        libs="-luring",
    ),
    _c(
        "a signal tells of input",
        (
            "static volatile int got; void h(int n) { got = 1; } signal(SIGIO, h); "
            "fcntl(0, F_SETOWN, getpid()); fcntl(0, F_SETFL, fcntl(0, F_GETFL) | O_ASYNC | "
            'O_NONBLOCK);\nsay("Name: "); while (read(0, line, 50) < 0) pause(); fcntl(0, '
            "F_SETFL, fcntl(0, F_GETFL) & ~(O_ASYNC | O_NONBLOCK));"
        ),
        asks("Name: ", "a\n"),
        ends(),
    ),
    _c(
        "sigtimedwait beside a question",
        (
            "sigset_t s; sigemptyset(&s); sigaddset(&s, SIGUSR2); sigprocmask(SIG_BLOCK, "
            '&s, 0); say("Sure? "); struct timespec t = {2, 500000000}; sigtimedwait(&s, '
            "0, &t);"
        ),
        works("Sure", 2.0),
        ends(),
    ),
    _c(
        "a thread that writes to an event after a pause",
        (
            "static int e; e = eventfd(0, 0); void *g(void *n) { usleep(2500000); if "
            '(write(e, "12345678", 8)) {} return 0; }\n'
            "pthread_t t; pthread_create(&t, 0, g, 0);\n"
        )
        + POLL % "e",
        works("", 2.0),
        ends(),
    ),
    _c(
        "a barrier of two threads, one of which reads",
        (
            "static pthread_barrier_t b; pthread_barrier_init(&b, 0, 2); void *f(void *n) "
            '{ say("Name: "); read(0, line, 50); pthread_barrier_wait(&b); return 0; }\n'
            "pthread_t t; pthread_create(&t, 0, f, 0); pthread_barrier_wait(&b); sleep(1); "
            'say("Age? "); read(0, line, 50);'
        ),
        *_TWO,
    ),
    _c(
        "vfork, and the child reads",
        (
            'if (!vfork()) { execlp("bash", "bash", "-c", "read -p Name:\\\\  x; sleep 1", '
            '(char *)0); _exit(1); } wait(0); say("Age? "); read(0, line, 50);'
        ),
        asks("Name: ", "a\n"),
        asks("Age? ", "4\n"),
        ends(),
    ),
    _c(
        "a child that reads while the parent polls its end",
        (
            'int c = fork(); if (!c) { say("Name: "); read(0, line, 50); sleep(1); '
            "_exit(0); } int f = syscall(SYS_pidfd_open, c, 0); struct pollfd q = {f, "
            'POLLIN}; poll(&q, 1, -1); say("Age? "); read(0, line, 50);'
        ),
        *_TWO,
    ),
    _c(
        "a parent that pauses again and again until its child has read",
        (
            'int c = fork(); if (!c) { say("Name: "); read(0, line, 50); sleep(1); '
            '_exit(0); } while (!waitpid(c, 0, WNOHANG)) usleep(200000); say("Age? "); '
            "read(0, line, 50);"
        ),
        *_TWO,
    ),
    _c(
        "preadv2 with no offset",
        (
            'char b[50]; struct iovec v = {b, 50}; say("Name: "); preadv2(0, &v, 1, -1, '
            '0); sleep(1); say("Age? "); preadv2(0, &v, 1, -1, 0);'
        ),
        *_TWO,
    ),
    _c(
        "splice of the keyboard",
        (
            'pipe(p); say("Name: "); while (splice(0, 0, p[1], 0, 99, 0) < 0) { read(0, '
            'line, 50); break; } sleep(1); say("Age? "); read(0, line, 50);'
        ),
        *_TWO,
    ),
    _c(
        "sendfile of the keyboard",
        (
            'say("Name: "); if (sendfile(1, 0, 0, 50) < 0) read(0, line, 50); sleep(1); '
            'say("Age? "); read(0, line, 50);'
        ),
        *_TWO,
    ),
    _c(
        "ppoll with a mask, and an alarm",
        (
            "signal(SIGALRM, hand); pipe(p); sigset_t s; sigemptyset(&s); alarm(2); "
            'say("Working? "); struct pollfd f = {p[0], POLLIN}; ppoll(&f, 1, 0, &s); '
            "read(p[0], line, 1);"
        ),
        works("Working", 1.6),
        ends(),
    ),
    _c(
        "a read that an alarm ends",
        (
            'void h(int n) { puts("too late"); _exit(3); } signal(SIGALRM, h); alarm(30); '
            'say("Name: "); read(0, line, 50);'
        ),
        asks("Name: ", "a\n"),
        ends(),
    ),
    _c(
        "select with a changed set in a loop",
        (
            'say("Key? "); for (;;) { fd_set s; FD_ZERO(&s); FD_SET(0, &s); struct timeval '
            "t = {0, 700000}; if (select(1, &s, 0, 0, &t)) break; } read(0, line, 9);"
        ),
        asks("Key? ", "q\n", "line|key"),
        ends(),
    ),
    _c(
        "a mutex that another process holds",
        (
            "pthread_mutex_t *m = mmap(0, 99, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0); "
            "pthread_mutexattr_t a; pthread_mutexattr_init(&a); "
            "pthread_mutexattr_setpshared(&a, 1); pthread_mutex_init(m, &a);\n"
            "if (!fork()) { pthread_mutex_lock(m); usleep(2500000); "
            'pthread_mutex_unlock(m); _exit(0); } usleep(99999); say("Password: "); '
            "pthread_mutex_lock(m);"
        ),
        works("Password", 2.0),
        ends(),
    ),
    _c(
        "a semaphore of System V",
        (
            "#include <sys/sem.h>\nint i = semget(IPC_PRIVATE, 1, 0600); if (!fork()) { "
            "usleep(2500000); struct sembuf o = {0, 1, 0}; semop(i, &o, 1); _exit(0); } "
            'say("OK? [y/n] "); struct sembuf o = {0, -1, 0}; semop(i, &o, 1); semctl(i, '
            "0, IPC_RMID);"
        ),
        works("OK", 2.0),
        ends(),
    ),
    _c(
        "a message of a socket pair, and the keyboard",
        (
            "socketpair(AF_UNIX, SOCK_DGRAM, 0, p); if (!fork()) { setpgid(0, 0); "
            'usleep(2500000); if (write(p[1], "x", 1)) {} _exit(0); } close(p[1]);\n'
        )
        + POLL % "p[0]",
        works("", 2.0),
        ends(),
    ),
    _c(
        "edge of an epoll with the keyboard, twice",
        (
            "int e = epoll_create1(0); struct epoll_event v = {EPOLLIN | EPOLLET}; "
            "epoll_ctl(e, EPOLL_CTL_ADD, 0, &v); for (int i = 0; i < 2; i++) { say(i ? "
            '"Age? " : "Name: "); epoll_wait(e, &v, 1, -1); read(0, line, 50); if (!i) '
            "sleep(1); }"
        ),
        *_TWO,
    ),
    _c(
        "a timer that is set again and again beside the keyboard",
        (
            "int t = timerfd_create(CLOCK_MONOTONIC, 0); struct itimerspec s = {{0, "
            '200000000}, {0, 200000000}}; timerfd_settime(t, 0, &s, 0); say("Name: "); '
            "struct pollfd f[2] = {{0, POLLIN}, {t, POLLIN}}; for (;;) { poll(f, 2, -1); "
            "if (f[1].revents) read(t, line, 8); if (f[0].revents) break; } read(0, line, "
            "50);"
        ),
        asks("Name: ", "a\n"),
        ends(),
    ),
    _c(
        "a pseudo terminal of its own, and work behind it",
        (
            "int m = posix_openpt(O_RDWR); grantpt(m); unlockpt(m); if (!fork()) { "
            "setsid(); int s = open(ptsname(m), O_RDWR); close(0); close(1); dup2(s, 0); "
            'dup2(s, 1); say("Name: "); usleep(2500000); _exit(0); } for (;;) { int n = '
            "read(m, line, 50); if (n <= 0) break; if (write(1, line, n)) {} }"
        ),
        works("Name", 2.0),
        ends(),
    ),
)
