"""Programs that can run other programs, or whatever code they are given: listing one is as good as allowing everything.

Names are of real programs; a version suffix (``python3.11``) or a variant (``vim.tiny``) counts as its program. The list cannot be
complete, which is why an allowlist names what may run instead of what may not.
"""

import re
from typing import Final

_SHELLS: Final = (
    "sh bash rbash bash-static static-sh zsh-static dash zsh fish ksh mksh lksh pdksh csh "
    "tcsh ash yash oksh rc elvish nu xonsh osh oil pwsh powershell busybox toybox"
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
    "time strace ltrace perf valgrind entr at batch crontab systemd-run systemctl systemd-nspawn journalctl machinectl "
    "start-stop-daemon daemonize flock prlimit numactl cgexec dbus-run-session dbus-launch dbus-send busctl gdbus xinit startx xterm "
    "ssh-agent ssh ssh-add ssh-keygen ssh-copy-id scp sftp sshpass autossh rsync mosh telnet rlogin rsh socat nc ncat netcat openssl "
    "wget install split sort diff3 sdiff docker podman buildah kubectl helm lxc ctr nerdctl runc crun screen tmux zellij dtach abduco "
    "make gmake cmake ctest ninja meson just rake ant mvn gradle bazel scons sbt npm npx pnpm yarn pip pipx uv uvx poetry conda hatch "
    "tox nox pytest gem bundle bundler cargo rustup rustc go gcc cc g++ c++ clang cpp tcc ld tar bsdtar cpio pax zip unzip 7z 7za 7zr "
    "rar unrar git gitk tig hg svn bzr cvs darcs fossil vi vim view vimdiff rvim rview gvim nvim nano rnano pico joe jed mcedit mc "
    "micro emacsclient kak helix hx code ne editor sensible-editor sensible-pager sensible-browser select-editor pager less more most "
    "zless zmore lesspipe man mandb whatis info pinfo pg bat batcat w3m lynx links elinks mutt neomutt mail mailx sendmail apt "
    "aptitude dpkg dpkg-reconfigure dpkg-deb debconf rpm rpmbuild yum dnf zypper pacman apk brew snap flatpak nix nix-shell nix-env "
    "guix service rc-service logrotate run-parts invoke-rc.d update-alternatives ansible ansible-playbook salt terraform tofu vagrant "
    "packer capsh faketime fakeroot proot bwrap firejail gpg gpg2 lftp ftp tftp rlwrap cpulimit choom eatmydata ldd ld.so tcpdump "
    "tshark nmap htop ranger nnn lf vifm fzf sk dmesg xdotool xdg-open open run-mailcap see compose mount umount cryptsetup insmod "
    "modprobe ip lex flex yacc latex tex pdftex pdflatex xelatex lualatex gdbserver rclone restic borg ispell aspell cscope gcore "
    "wine openvpn pppd dhclient udevadm convert magick pandoc celery supervisorctl pm2 nodemon foreman"
)
# Less known: each has an option, a command of its own or a plugin that runs another program.
_MORE_RUNNERS: Final = (
    "ack add-apt-repository ag agetty anacron apache2 autoexpect aws az bpftrace bugpoint bunx byobu bzless bzmore c89 c99 cadaver "
    "catchsegv chpst chromium chromium-browser chronic coredumpctl corepack cowsay cowthink cpan cron crystal cscope-indexer csi dart "
    "debconf-apt-progress debuild dialog direnv dislocate dmsetup dotnet dtruss dumb-init elixir elm envdir envuidgid execlineb exim "
    "exim4 fetchmail foot fsck fstab-decode gapplication gcloud gcore gdb-add-index gdbtui gdc geqn getty gfortran ginsh gio "
    "google-chrome gosu gpg-connect-agent gpg-zip gpgconf gpgsm gpgtar groff grunt gsutil gulp haproxy heaptrack homectl hostnamectl "
    "httpd hyperfine idris ifne inetd instmodsh irssi isql javac javadoc jdb jest jexec jpackage jrunscript k3s kernel-install "
    "keytool kibitz kitty knife konsole kotlin kotlinc kpt kvm latexmk ld lein lighttpd litecli lli localectl login loginctl logsave "
    "luit lzless lzmore make-first-existing-target makepkg mbsync mcdiff mcview memusage minikube mispipe mix mkfs mocha mono mpop "
    "mpv msgexec msgfilter msmtp multitime multixterm mycli ncftp networkctl newsboat nginx nim nomad not nroff nvcc oc ocaml "
    "ocamlrun openvt opt patch pdb pee pexec pg_ctl pg_ctlcluster pg_virtualenv pgbench pgcli pic pidstat pinentry podman-compose "
    "poly portablectl posh postgres ppss procmail prove proxychains proxychains4 pry ptyxis puppet pyenv r2 rbenv red redis-server "
    "resolvectl rg rpcgen rpmquery rtcwake rtorrent runcon runsv runsvdir rxvt sash scalar scanmem setuidgid sjsh slogin slsh "
    "smbclient sml sotruss sshd sshuttle st stap su-exec sulogin svc swift switch_root tasksh tc tcpserver timed-read timed-run "
    "timedatectl tini tmate tomlq torify torsocks trace-cmd troff ttyd ucf uclampset uftrace urxvt userdbctl vidir vimtutor vipe "
    "virsh vlc websocketd weechat wireshark x-terminal-emulator x-www-browser xdg-email xdg-settings xinetd xkibitz xq-python "
    "xvfb-run xzless xzmore yad yelp zathura zig zrun zstdless"
)
# Whole families: of a package manager, of version control, of the service manager, of the loader.
_FAMILIES: Final = (
    "ansible- apt- docker- dpkg- expect_ git- ld-linux ld-musl ld.so kubectl- qemu- s6- salt- ssh- systemd- virt- gnome-terminal alacritty"
)

SPAWNERS: Final = frozenset(f"{_SHELLS} {_INTERPRETERS} {_RUNNERS} {_MORE_RUNNERS}".split())
FAMILIES: Final = tuple(_FAMILIES.split())
SHELLS: Final = frozenset(_SHELLS.split())
_VERSION: Final = re.compile(r"[-.]?\d[\d.]*$")
_TARGET: Final = re.compile(r"^[a-z0-9_]+-(?:[a-z0-9_]+-)?(?:gnu|musl|gnueabihf|darwin|mingw32)[a-z0-9]*-")


def base_name(program: str) -> str:
    """``/usr/bin/python3.11`` and ``python3`` are ``python``, ``vim.tiny`` is ``vim``; ``7z`` and ``gpg2`` stay what they are."""
    name = _TARGET.sub("", program.rsplit("/", 1)[-1])
    candidates = (name, _VERSION.sub("", name), name.split(".", 1)[0], _VERSION.sub("", name.split(".", 1)[0]))
    return next((candidate for candidate in candidates if candidate in SPAWNERS), name)


def can_spawn(program: str) -> bool:
    """Whether the program is known to run others."""
    name = base_name(program)
    return name in SPAWNERS or name.startswith(FAMILIES)


def is_shell(program: str) -> bool:
    """Whether the program is a shell, which reads command lines."""
    return base_name(program) in SHELLS
