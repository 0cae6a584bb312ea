"""System calls that are seldom seen, from programs of C."""

from tests.programs.catalogue.program import Program, Step, asks, ends, runs, works

INCLUDES = """\
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <mqueue.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static char line[100];
static void say(const char *text) { fputs(text, stdout); fflush(stdout); }
static void *take(void *none) { return line + read(0, line, 100) * 0; }
static void later(int fd, double seconds) {
  if (fork() == 0) { usleep(seconds * 1e6); if (write(fd, "12345678", 8)) {} _exit(0); }
}
"""
_TWO = (asks("Name: ", "ann\n"), asks("Age? ", "4\n"), ends())


def _c(name: str, code: str, *steps: Step) -> Program:
    files = {"a.c": INCLUDES + "int main(void) {\n" + code + "\nreturn 0; }\n"}
    return runs(name, "./a", *steps, first="gcc -w -pthread -o a a.c", files=files, needs="gcc")


EVERYDAY: tuple[Program, ...] = ()
ALL = (
    _c(
        "a thread with descriptors of its own",
        "int p[2]; pipe(p); later(p[1], 2.5);\n"
        "void *f(void *n) { unshare(CLONE_FILES); dup2(p[0], 0); read(0, line, 8); return 0; }\n"
        "pthread_t t; pthread_create(&t, 0, f, 0); pthread_join(t, 0);",
        works("", 2.0),
        ends(),
    ),
    _c(
        "a reader whose first thread has ended",
        'void *f(void *n) { say("Name: "); read(0, line, 99); sleep(1); say("Age? ");\n'
        "  read(0, line, 99); exit(0); }\n"
        "pthread_t t; pthread_create(&t, 0, f, 0); pthread_exit(0);",
        *_TWO,
    ),
    _c(
        "polls of 10 ms",
        'say("Key? "); struct pollfd p = {0, POLLIN}; while (!poll(&p, 1, 10)); read(0, line, 9);',
        asks("Key? ", "q\n", "line|key"),
        ends(),
    ),
    _c(
        "readv",
        'char b[9]; struct iovec v[2] = {{b, 4}, {line, 50}}; say("Name: "); readv(0, v, 2);\n'
        'sleep(1); say("Age? "); readv(0, v, 2);',
        *_TWO,
    ),
    _c(
        "a terminal that was opened again",
        'say("Name: "); int f = open("/proc/self/fd/0", O_RDONLY); close(0); read(f, line, 50);\n'
        'dup2(f, 77); close(f); sleep(1); say("Age? "); read(77, line, 50);',
        *_TWO,
    ),
    _c(
        "signals and the keyboard in one set",
        "sigset_t s; sigemptyset(&s); sigaddset(&s, SIGCHLD); sigaddset(&s, SIGUSR1);\n"
        "sigprocmask(SIG_BLOCK, &s, 0); int f = signalfd(-1, &s, 0), e = epoll_create1(0);\n"
        "struct epoll_event v = {EPOLLIN, {.fd = 0}}; epoll_ctl(e, EPOLL_CTL_ADD, 0, &v);\n"
        'epoll_ctl(e, EPOLL_CTL_ADD, f, &v); say("Name: "); epoll_wait(e, &v, 1, -1);\n'
        'read(0, line, 50); sleep(1); say("Age? "); epoll_wait(e, &v, 1, -1);',
        *_TWO,
    ),
    _c(
        "a clock and the keyboard in one set",
        "int f = timerfd_create(CLOCK_MONOTONIC, 0), e = epoll_create1(0);\n"
        "struct itimerspec i = {{0, 200000000}, {0, 200000000}}; timerfd_settime(f, 0, &i, 0);\n"
        "struct epoll_event v = {EPOLLIN, {.fd = 0}}; epoll_ctl(e, EPOLL_CTL_ADD, 0, &v);\n"
        'v.data.fd = f; epoll_ctl(e, EPOLL_CTL_ADD, f, &v); say("Command: ");\n'
        "for (;;) { epoll_wait(e, &v, 1, -1); if (v.data.fd == 0) break; read(f, line, 8); }",
        asks("Command: ", "x\n"),
        ends(),
    ),
    _c(
        "a set that does not listen to the keyboard",
        "int p[2]; pipe(p); later(p[1], 2.5); int e = epoll_create1(0);\n"
        "struct epoll_event v = {0, {.fd = 0}}; epoll_ctl(e, EPOLL_CTL_ADD, 0, &v);\n"
        'v.events = EPOLLIN; epoll_ctl(e, EPOLL_CTL_ADD, p[0], &v); say("Name: ");\n'
        "epoll_wait(e, &v, 1, -1);",
        works("Name", 2.0),
        ends(),
    ),
    _c(
        "a set that was told once",
        "int p[2]; pipe(p); int e = epoll_create1(0); struct epoll_event v = {EPOLLIN | "
        "EPOLLONESHOT};\n"
        'epoll_ctl(e, EPOLL_CTL_ADD, 0, &v); say("Name: "); epoll_wait(e, &v, 1, -1);\n'
        "read(0, line, 50); later(p[1], 2.5); v.events = EPOLLIN;\n"
        'epoll_ctl(e, EPOLL_CTL_ADD, p[0], &v); say("Age? "); epoll_wait(e, &v, 1, -1);',
        asks("Name: ", "a\n"),
        works("Age", 2.0),
        ends(),
    ),
    _c(
        "a full pipe and the keyboard",
        "int p[2]; pipe(p); fcntl(p[1], F_SETFL, O_NONBLOCK); while (write(p[1], line, 100) > 0);\n"
        "if (fork() == 0) { close(p[1]); sleep(3); while (read(p[0], line, 99) > 0); _exit(0); }\n"
        "struct pollfd f[2] = {{0, POLLIN}, {p[1], POLLOUT}}; poll(f, 2, -1);",
        works("", 2.5),
        ends(),
    ),
    _c(
        "a set of descriptors to write to",
        "int p[2]; pipe(p); fcntl(p[1], F_SETFL, O_NONBLOCK); while (write(p[1], line, 100) > 0);\n"
        "if (fork() == 0) { close(p[1]); setsid(); pause(); }\n"
        "fd_set r, w; FD_ZERO(&r); FD_ZERO(&w); FD_SET(0, &r); FD_SET(p[1], &w);\n"
        "select(p[1] + 1, &r, &w, 0, 0);",
        works("", 2.0),
    ),
    _c(
        "the end of a pipe's reader and the keyboard",
        "int p[2]; pipe(p); if (fork() == 0) { close(p[1]); int q[2]; pipe(q);\n"
        "  later(q[1], 2.5); read(q[0], line, 8); _exit(0); }\n"
        "close(p[0]); struct pollfd f[2] = {{0, POLLIN}, {p[1], 0}}; poll(f, 2, -1);",
        works("", 2.0),
        ends(),
    ),
    _c(
        "a queue of messages and the keyboard",
        'char n[30]; sprintf(n, "/holdline%d", getpid());\n'
        "struct mq_attr a = {0, 2, 9}; int q = mq_open(n, O_RDWR | O_CREAT, 0600, &a);\n"
        "if (q < 0) { perror(n); _exit(9); }\n"
        "if (fork() == 0) { setsid(); usleep(2500000); mq_send(q, line, 3, 0); _exit(0); }\n"
        "mq_unlink(n); struct pollfd f[2] = {{0, POLLIN}, {q, POLLIN}}; poll(f, 2, -1);",
        works("", 2.0),
        ends(),
    ),
    _c(
        "an event that a ring sets off",
        "struct { unsigned d[30]; } a = {0}; int r = syscall(425, 4, &a), e = eventfd(0, 0);\n"
        "if (r < 0) _exit(9); syscall(427, r, 4, &e, 1);\n"
        ""
        "char *q = mmap(0, 4096, 3, MAP_SHARED, r, 0), *s = mmap(0, 4096, 3, MAP_SHARED, r, "
        "0x10000000);\n"
        "struct timespec t = {2, 500000000}; s[0] = 11; *(int *)(s + 4) = -1;\n"
        "*(void **)(s + 16) = &t; *(int *)(s + 24) = 1;\n"
        "*(int *)(q + a.d[16]) = 0; *(int *)(q + a.d[11]) = 1;\n"
        "if (syscall(426, r, 1, 0, 0, 0, 0) != 1) _exit(8);\n"
        "struct pollfd f[2] = {{0, POLLIN}, {e, POLLIN}}; poll(f, 2, -1);",
        works("", 2.0),
        ends(),
    ),
)
