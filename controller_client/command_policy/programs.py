"""Programs that can run other programs, or whatever code they are given: listing one is as good as allowing everything.

Names are of real programs; a version suffix (``python3.11``) or a variant (``vim.tiny``) counts as its program. The list cannot be
complete, which is why an allowlist names what may run instead of what may not.
"""

import re
from typing import Final

_SHELLS: Final = (
    "sh bash rbash dash zsh fish ksh mksh lksh pdksh csh tcsh ash yash oksh rc elvish nu xonsh osh oil pwsh powershell busybox toybox"
)
_INTERPRETERS: Final = (
    "python pypy perl ruby node nodejs deno bun php lua luajit tclsh wish expect guile awk gawk mawk nawk original-awk sed gsed ed ex "
    "m4 R Rscript julia irb ipython jshell ghci runghc erl iex scala groovy java osascript octave gnuplot bc dc sqlite sqlite3 psql "
    "mysql mariadb mongo mongosh redis-cli cling gdb lldb jq yq gs emacs sbcl clisp racket swipl gst qjs d8 tsx ts-node wasmtime "
    "pydoc perldoc rename prename file-rename"
)
_RUNNERS: Final = (
    "env find fd fdfind xargs parallel nice ionice chrt taskset nohup timeout stdbuf unbuffer setsid setpriv setarch linux32 linux64 "
    "i386 x86_64 unshare nsenter chroot runuser su sudo sudoedit visudo vipw vigr doas pkexec run0 sg newgrp script scriptlive watch "
    "time strace ltrace perf valgrind entr at batch crontab systemd-run systemctl systemd-nspawn journalctl machinectl start-stop- "
    "daemon daemonize flock prlimit numactl cgexec dbus-run-session dbus-launch dbus-send busctl gdbus xinit startx xterm ssh-agent "
    "ssh ssh-add ssh-keygen ssh-copy-id scp sftp sshpass autossh rsync mosh telnet rlogin rsh socat nc ncat netcat openssl wget "
    "install split sort diff3 sdiff docker podman buildah kubectl helm lxc ctr nerdctl runc crun screen tmux zellij dtach abduco make "
    "gmake cmake ctest ninja meson just rake ant mvn gradle bazel scons sbt npm npx pnpm yarn pip pipx uv uvx poetry conda hatch tox "
    "nox pytest gem bundle bundler cargo rustup rustc go gcc cc g++ c++ clang cpp tcc ld tar bsdtar cpio pax zip unzip 7z 7za 7zr rar "
    "unrar git gitk tig hg svn bzr cvs darcs fossil vi vim view vimdiff rvim rview gvim nvim nano rnano pico joe jed mcedit mc micro "
    "emacsclient kak helix hx code ne editor sensible-editor sensible-pager sensible-browser select-editor pager less more most zless "
    "zmore lesspipe man mandb whatis info pinfo pg bat batcat w3m lynx links elinks mutt neomutt mail mailx sendmail apt apt-get apt- "
    "cache aptitude dpkg dpkg-reconfigure dpkg-deb debconf rpm rpmbuild yum dnf zypper pacman apk brew snap flatpak nix nix-shell "
    "nix-env guix service rc-service logrotate run-parts invoke-rc.d update-alternatives ansible ansible-playbook salt terraform tofu "
    "vagrant packer capsh faketime fakeroot proot bwrap firejail gpg gpg2 lftp ftp tftp rlwrap cpulimit choom eatmydata ldd ld.so "
    "tcpdump tshark nmap htop ranger nnn lf vifm fzf sk dmesg xdotool xdg-open open run-mailcap see compose mount umount cryptsetup "
    "insmod modprobe ip lex flex yacc latex tex pdftex pdflatex xelatex lualatex gdbserver rclone restic borg ispell aspell cscope "
    "gcore wine openvpn pppd dhclient udevadm convert magick pandoc celery supervisorctl pm2 nodemon foreman"
)

SPAWNERS: Final = frozenset(f"{_SHELLS} {_INTERPRETERS} {_RUNNERS}".split())
SHELLS: Final = frozenset(_SHELLS.split())
_VERSION: Final = re.compile(r"[-.]?\d[\d.]*$")


def base_name(program: str) -> str:
    """``/usr/bin/python3.11`` and ``python3`` are ``python``, ``vim.tiny`` is ``vim``; ``7z`` and ``gpg2`` stay what they are."""
    name = program.rsplit("/", 1)[-1]
    candidates = (name, _VERSION.sub("", name), name.split(".", 1)[0], _VERSION.sub("", name.split(".", 1)[0]))
    return next((candidate for candidate in candidates if candidate in SPAWNERS), name)


def can_spawn(program: str) -> bool:
    """Whether the program is known to run others."""
    return base_name(program) in SPAWNERS


def is_shell(program: str) -> bool:
    """Whether the program is a shell, which reads command lines."""
    return base_name(program) in SHELLS
