"""Programs on another host, and programs that talk to a network."""

from tests.programs.catalogue.program import asks, ends, runs, scripted, shows, works

EVERYDAY = (
    runs(
        "ssh -t with a question",
        "{far} -t \"sleep 0.4; read -p 'Name: ' x; sleep 0.3\"",
        asks("'s password: ", "{ssh_password}\n", "secret"),
        asks("Name: ", "a\n", "line|shell|key"),
        ends(),
        server="ssh",
        needs="ssh",
    ),
    runs(
        "ssh that works",
        "{far} 'echo building; sleep 1.5'",
        asks("'s password: ", "{ssh_password}\n", "secret"),
        ends(),
        server="ssh",
        needs="ssh",
    ),
    runs(
        "ssh with a login shell",
        "{far}",
        asks("'s password: ", "{ssh_password}\n", "secret"),
        asks("$ ", "sleep 0.4\n", "shell|line"),
        asks("$ ", "exit\n", "shell|line"),
        ends(),
        server="ssh",
        needs="ssh",
    ),
    runs(
        "ssh with an unknown host",
        "ssh -p {ssh_port} -o StrictHostKeyChecking=ask {ssh_options} {ssh_user}@127.0.0.1 true",
        asks("(yes/no/[fingerprint])? ", "no\n"),
        ends(255),
        server="ssh",
        needs="ssh",
    ),
    runs(
        "sftp",
        "sftp -P {ssh_port} {ssh_options} {ssh_user}@127.0.0.1",
        asks("'s password: ", "{ssh_password}\n", "secret"),
        asks("sftp> ", "ls\n"),
        asks("sftp> ", "bye\n"),
        ends(),
        server="ssh",
    ),
    runs(
        "scp",
        "scp -P {ssh_port} {ssh_options} {ssh_user}@127.0.0.1:/etc/hostname copy",
        asks("'s password: ", "{ssh_password}\n", "secret"),
        ends(),
        server="ssh",
    ),
    runs(
        "ssh-copy-id",
        "ssh-copy-id -f -i key.pub -p {ssh_port} {ssh_options} {ssh_user}@127.0.0.1",
        asks("'s password: ", "{ssh_password}\n", "secret"),
        ends(),
        first="mkdir .ssh && ssh-keygen -q -t ed25519 -N '' -f key",
        server="ssh",
    ),
    scripted(
        "a wait for the network",
        'exec 3<>/dev/tcp/127.0.0.1/{slow}; printf "Password: "; read -u 3 x',
        ends(),
        server="slow",
    ),
    runs(
        "python at a slow server",
        (
            '/usr/bin/python3 -c \'import urllib.request as u; print("Token: ", end="", '
            'flush=True); u.urlopen("http://127.0.0.1:{slow}/").read()\''
        ),
        ends(),
        server="slow",
    ),
    runs(
        "node at a slow server",
        (
            "node -e \"process.stdout.write('Token: '); "
            "fetch('http://127.0.0.1:{slow}/').then(r => r.text())\""
        ),
        ends(),
        server="slow",
    ),
)
ALL = (
    runs("curl", "curl -s http://127.0.0.1:{slow}/", ends(), server="slow"),
    runs("wget", "wget -q -O out http://127.0.0.1:{slow}/", ends(), server="slow"),
    scripted(
        "curl after a question",
        'printf "Download? "; curl -s http://127.0.0.1:{slow}/',
        ends(),
        server="slow",
        needs="curl",
    ),
    runs("nc", "nc 127.0.0.1 {slow}", works("ok"), server="slow"),
    runs("socat and TCP", "socat - TCP:127.0.0.1:{slow}", ends(None), server="slow"),
    runs("telnet", "telnet", asks("telnet> ", "status\n"), asks("telnet> ", "quit\n"), ends(None)),
    runs("ftp", "ftp", asks("ftp> ", "status\n"), asks("ftp> ", "bye\n"), ends()),
    runs(
        "lftp", "lftp", asks("lftp :~> ", "!sleep 0.4\n"), asks("lftp :~> ", "exit\n"), ends(None)
    ),
    runs("ping", "timeout --foreground 2 ping -i 0.3 127.0.0.1", ends(None), needs="ping"),
    runs(
        "sshpass",
        "sshpass -p wrong {far} -o NumberOfPasswordPrompts=1 true",
        ends(255),
        server="ssh",
        needs="sshpass ssh",
    ),
    runs(
        "sshpass with a question",
        "sshpass -p {ssh_password} {far} -t \"read -p 'Name: ' x\"",
        asks("Name: ", "a\n", "line|shell|key"),
        ends(),
        server="ssh",
        needs="sshpass ssh",
    ),
    runs(
        "ssh twice",
        '{far} -t \'read -p "One: " x; bash --norc -c "sleep 0.4; read -p Two: y"\'',
        asks("'s password: ", "{ssh_password}\n", "secret"),
        asks("One: ", "a\n", "line|shell|key"),
        asks("Two:", "b\n", "line|shell|key"),
        ends(),
        server="ssh",
        needs="ssh",
    ),
    runs(
        "ssh with vim",
        "{far} -t 'TERM=xterm vim -u NONE'",
        asks("'s password: ", "{ssh_password}\n", "secret"),
        shows("~", ":q\r", "screen"),
        ends(),
        server="ssh",
        needs="ssh vim",
    ),
    runs(
        "ssh with a far secret",
        "{far} -t 'read -sp \"Code: \" x; sleep 0.3'",
        asks("'s password: ", "{ssh_password}\n", "secret"),
        asks("Code: ", "a\n", "secret|line|key"),
        ends(),
        server="ssh",
        needs="ssh",
    ),
    runs(
        "dbclient",
        "dbclient -y -y -p {ssh_port} {ssh_user}@127.0.0.1 'sleep 0.5'",
        shows("password: ", "{ssh_password}\n", "secret"),
        ends(),
        server="ssh",
    ),
    runs(
        "ansible",
        "{python}/ansible all -i 127.0.0.1, -c local -k -m ping",
        asks("SSH password: ", "x\n", "secret"),
        ends(None),
        env={"ANSIBLE_PYTHON_INTERPRETER": "/usr/bin/python3"},
    ),
    runs(
        "ansible-playbook that pauses",
        "{python}/ansible-playbook -i 127.0.0.1, -c local play.yml",
        shows("Go on", "\r", "line|key|secret"),
        ends(),
        files={
            "play.yml": (
                "- hosts: all\n  gather_facts: false\n  tasks:\n  - pause: {prompt: 'Go on'}\n"
            )
        },
    ),
    runs(
        "ansible-playbook with vars_prompt",
        "{python}/ansible-playbook -i 127.0.0.1, -c local play.yml",
        asks("Name: ", "a\n"),
        ends(),
        files={
            "play.yml": (
                "- hosts: all\n  gather_facts: false\n  vars_prompt:\n"
                "  - {name: n, prompt: Name, private: false}\n"
                "  tasks: []\n"
            )
        },
    ),
)
