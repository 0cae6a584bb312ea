"""Games, keys, clients and recorders of Debian."""

from tests.programs.catalogue.program import Program, asks, ends, runs, shows, works

G = "/usr/games/"
EVERYDAY: tuple[Program, ...] = ()
ALL = (
    runs(
        "adventure",
        G + "adventure",
        shows("instructions\\?", "no\n", "line"),
        shows("building", "quit\n", "line"),
        shows("really want to quit", "yes\n", "line"),
        ends(None),
        needs=G + "adventure",
    ),
    runs(
        "hangman",
        G + "hangman",
        shows("Guess:", "\x04", "key|screen|line"),
        ends(None),
        needs=G + "hangman",
    ),
    runs(
        "arithmetic",
        G + "arithmetic",
        shows("\\d+ [+-] \\d+ =", "x\n", "line"),
        shows("Please type a number", "\x04", "line"),
        ends(None),
        needs=G + "arithmetic",
    ),
    runs(
        "go-fish",
        G + "go-fish -p",
        shows("instructions", "n\n", "line"),
        shows("[Yy]ou ask me for: ", "\x04", "line"),
        ends(None),
        needs=G + "go-fish",
    ),
    runs(
        "hunt the wumpus",
        G + "wump",
        shows("[Ii]nstructions", "n\n", "line"),
        shows("Move or shoot", "\x04", "line"),
        ends(None),
        needs=G + "wump",
    ),
    runs(
        "robots",
        G + "robots",
        shows("Directions", "q", "screen|key"),
        shows("quit", "y", "screen|key"),
        ends(None),
        needs=G + "robots",
    ),
    runs("greed", G + "greed", shows("Score", "q", "screen|key"), needs=G + "greed"),
    runs("rain", G + "rain", works("", 1.5), needs=G + "rain"),
    runs("sl", G + "sl", works("", 1.5), needs=G + "sl"),
    runs("nudoku", G + "nudoku", shows("nudoku", "Q", "screen|key"), needs=G + "nudoku"),
    runs("cmatrix", "cmatrix", works("", 1.5)),
    runs(
        "ci of a new file",
        "ci a",
        shows(">> ", "text\n", "line"),
        asks(">> ", ".\n"),
        ends(),
        first="echo a > a",
        needs="ci",
    ),
    runs(
        "co over a changed file",
        "co a",
        shows("remove it\\? \\[ny\\]\\(n\\): ", "n\n", "line"),
        ends(None),
        first="echo a > a; ci -t-x -q a; co -q a; chmod +w a",
        needs="ci",
    ),
    runs(
        "certtool -q",
        "certtool --generate-request --load-privkey k",
        asks("Country name (2 chars): ", "DE\n"),
        asks("State or province name: ", "b\n"),
        first="certtool --generate-privkey --bits 2048 --outfile k 2>/dev/null",
    ),
    runs(
        "certtool at work",
        "certtool --generate-privkey --bits 15360 --outfile k",
        works("Generating", 1.5),
    ),
    runs(
        "ssss-split", "ssss-split -t 2 -n 3", shows("Enter the secret", "x\n", "secret"), ends(None)
    ),
    runs("ssss-combine", "ssss-combine -t 2", shows("Share \\[1/2\\]: ", "x\n", "line|secret")),
    runs(
        "gpg --edit-key help",
        "gpg --homedir h --card-edit",
        shows("gpg/card> ", "quit\n", "line"),
        ends(None),
        first="mkdir -m 700 h",
    ),
    runs(
        "gpg --full-gen-key",
        "gpg --homedir h --pinentry-mode loopback --full-gen-key",
        shows("Your selection\\? ", "1\n", "line"),
        shows("keysize do you want\\? \\(3072\\) ", "1024\n", "line"),
        shows("Key is valid for\\? \\(0\\) ", "0\n", "line"),
        shows("Is this correct\\? \\(y/N\\) ", "y\n", "line"),
        shows("Real name: ", "adaada\n", "line"),
        shows("Email address: ", "\n", "line"),
        shows("Comment: ", "\n", "line"),
        shows("\\(O\\)kay/\\(Q\\)uit\\? ", "q\n", "line"),
        ends(None),
        first="mkdir -m 700 h",
    ),
    runs(
        "nslookup", "nslookup", asks("> ", "server 127.0.0.1\n"), asks("> ", "exit\n"), ends(None)
    ),
    runs("ncftp", "ncftp", shows("ncftp.*> ", "quit\n", "line|shell"), ends(None)),
    runs(
        "ldapsearch -W",
        "ldapsearch -x -D cn=a -W -H ldap://127.0.0.1:{free}",
        shows("Enter LDAP Password: ", "x\n", "secret"),
        ends(None),
    ),
    runs(
        "openssl s_server at work",
        "openssl s_server -accept 127.0.0.1:{free} -nocert",
        works("ACCEPT", 1.5),
    ),
    runs("gnutls-serv at work", "gnutls-serv -p {free} --http", works("", 1.5)),
    runs(
        "s-nail",
        "s-nail -#",
        shows("\\? ", "quit\n", "line|shell"),
        ends(None),
        env={"MAILRC": "/dev/null"},
    ),
    runs(
        "task without a configuration",
        "task list",
        shows("\\(yes/no\\) ", "no\n", "line"),
        ends(None),
    ),
    runs("sc", "sc", shows("10", "q", "screen|key"), ends(None)),
    runs(
        "abook", "abook -C c --datafile d", shows("abook|[Qq]uit|q:", "q", "screen|key"), ends(None)
    ),
    runs("testdisk", "testdisk d", shows("Proceed", "q", "screen|key"), first="truncate -s 5M d"),
    runs("slsh", "slsh", asks("slsh> ", "sleep(1);\n"), asks("slsh> ", "quit;\n"), ends(None)),
    runs("pike", "pike8.0", asks("> ", "sleep(1);\n"), asks("> ", "quit\n"), ends(None)),
    runs("picolisp", "picolisp", asks(": ", "(wait 600)\n"), asks(": ", "(bye)\n"), ends(None)),
    runs("scheme48", "scheme48", asks("> ", "(+ 1 2)\n"), asks("> ", ",exit\n"), ends(None)),
    runs(
        "mathomatic",
        "mathomatic",
        shows("1-> ", "a=b+1\n", "line"),
        shows("1-> ", "quit\n", "line"),
        ends(None),
    ),
    runs(
        "wcalc", "wcalc", shows("-> ", "2+3\n", "line"), shows("-> ", "quit\n", "line"), ends(None)
    ),
    runs(
        "ttyrec",
        "ttyrec -e 'bash --norc -c \"read -p Name:\\  x; sleep 1; read -p Age?\\  y\"' t",
        asks("Name: ", "a\n"),
        asks("Age? ", "4\n"),
        ends(None),
    ),
    runs(
        "asciinema rec",
        (
            "asciinema rec -q -c 'bash --norc -c \"read -p Name:\\  x; sleep 1; read -p "
            "Age?\\  y\"' t"
        ),
        asks("Name: ", "a\n"),
        asks("Age? ", "4\n"),
        ends(None),
    ),
    runs(
        "expect that passes a question on",
        "expect app",
        asks("Name: ", "a\n"),
        works("hm", 1.0),
        ends(None),
        files={"app": "spawn -noecho bash -c {read -p Name:\\  x; echo hm; sleep 1.5}\ninteract\n"},
    ),
    runs(
        "sudo -k after a pause",
        "bash -c 'sleep 1; sudo -k true'",
        works("", 0.8),
        shows("[Pp]assword", "\x03", "secret"),
        ends(None),
        whom="user",
        needs="sudo",
    ),
    runs(
        "runuser with a question",
        'runuser -u nobody -- bash -c \'read -p "Name: " x; sleep 1; read -p "Age? " y\'',
        asks("Name: ", "a\n"),
        asks("Age? ", "4\n"),
        ends(),
        whom="root",
    ),
)
