"""The programs that can run other programs, or code that they are given.

To list one of them is to allow everything. Names are of real programs; a version suffix
(``python3.11``), a variant (``vim.tiny``) or a part between hyphens (``octave-cli``) counts as its
program. The list cannot be complete, so an allowlist names the programs that may run, not those
that may not.
"""

import re
from typing import Final

from controller_client.command_policy.whole_names import WHOLE_INTERPRETERS, WHOLE_NAMES

_SHELLS: Final = (
    "sh bash rbash bash-static static-sh zsh-static rzsh dash zsh fish ksh rksh mksh mksh-static "
    "rmksh lksh pdksh csh tcsh ash yash oksh rc elvish nu xonsh osh oil pwsh powershell busybox "
    "toybox"
)
_INTERPRETERS: Final = (
    "python pypy perl ruby node nodejs deno bun php lua luajit tclsh wish expect guile awk gawk "
    "mawk nawk original-awk sed gsed ed ex m4 R Rscript julia irb ipython jshell ghci runghc erl "
    "iex scala groovy java osascript octave gnuplot bc dc sqlite sqlite3 psql mysql mariadb mongo "
    "mongosh redis-cli cling gdb lldb jq yq gs emacs sbcl clisp racket swipl gst qjs d8 tsx "
    "ts-node wasmtime pydoc perldoc rename prename file-rename"
)
_RUNNERS: Final = (
    "env find fd fdfind xargs parallel nice ionice chrt taskset nohup timeout stdbuf unbuffer "
    "setsid setpriv setarch linux32 linux64 i386 x86_64 unshare nsenter chroot runuser su sudo "
    "sudoedit visudo vipw vigr doas pkexec run0 sg newgrp script scriptlive watch time strace "
    "ltrace perf valgrind entr at batch crontab systemd-run systemctl systemd-nspawn journalctl "
    "machinectl start-stop-daemon daemonize flock prlimit numactl cgexec dbus-run-session "
    "dbus-launch dbus-send busctl gdbus xinit startx xterm ssh-agent ssh ssh-add ssh-keygen "
    "ssh-copy-id scp sftp sshpass autossh rsync mosh telnet rlogin rsh socat nc ncat netcat "
    "openssl wget install split sort diff3 sdiff docker podman buildah kubectl helm lxc ctr "
    "nerdctl runc crun screen tmux zellij dtach abduco make gmake cmake ctest ninja meson just "
    "rake ant mvn gradle bazel scons sbt npm npx pnpm yarn pip pipx uv uvx poetry conda hatch tox "
    "nox pytest gem bundle bundler cargo rustup rustc go gcc cc g++ c++ clang cpp tcc ld tar "
    "bsdtar cpio pax zip unzip 7z 7za 7zr rar unrar git gitk tig hg svn bzr cvs darcs fossil vi "
    "vim view vimdiff rvim rview gvim nvim nano rnano pico joe jed mcedit mc micro emacsclient "
    "kak helix hx code ne editor sensible-editor sensible-pager sensible-browser select-editor "
    "pager less more most zless zmore lesspipe man mandb whatis info pinfo pg bat batcat w3m lynx "
    "links elinks mutt neomutt mail mailx sendmail apt aptitude dpkg dpkg-reconfigure dpkg-deb "
    "debconf rpm rpmbuild yum dnf zypper pacman apk brew snap flatpak nix nix-shell nix-env guix "
    "service rc-service logrotate run-parts invoke-rc.d update-alternatives ansible "
    "ansible-playbook salt terraform tofu vagrant packer capsh faketime fakeroot proot bwrap "
    "firejail gpg gpg2 lftp ftp tftp rlwrap cpulimit choom eatmydata ldd ld.so tcpdump tshark "
    "nmap htop ranger nnn lf vifm fzf sk dmesg xdotool xdg-open open run-mailcap see compose "
    "mount umount cryptsetup insmod modprobe ip lex flex yacc latex tex pdftex pdflatex xelatex "
    "lualatex gdbserver rclone restic borg ispell aspell cscope gcore wine openvpn pppd dhclient "
    "udevadm convert magick pandoc celery supervisorctl pm2 nodemon foreman"
)
# Less known: each has an option, a command of its own or a plugin that runs another program.
_MORE_RUNNERS: Final = (
    "a2ps aa-exec ack add-apt-repository aerc ag age agetty alien alpine amqp-consume anacron "
    "animate apache2 apache2ctl apptainer ar aria2c asciidoctor asciinema asdf autoexpect aws "
    "aws-vault az bb bconsole blender bmake bolt boot bpftrace bpython bsd-mailx bugpoint "
    "buildctl bunx byebug byobu bzless bzmore c89 c99 cabal cadaver caddy calcurse calife "
    "catchsegv cdist certbot ch-run chamber check_by_ssh checkinstall chef-client chezmoi chpst "
    "chromium chromium-browser chronic circusd clj clojure cmus cobc colordiff composer composite "
    "conjure coredumpctl corepack coverage cowbuilder cowsay cowthink cpan cpupower cqlsh crash "
    "crictl cron cronie crystal cscope-indexer csi csvtool curl dart dbclient dch dchroot "
    "deb-systemd-invoke debchange debconf-apt-progress debugfs debuild dhcpcd dialog direnv "
    "dislocate display distcc distrobox django-admin dmsetup dnsmasq doit dosbox dotnet doxygen "
    "dstat dtrace dtruss duckdb dumb-init dune dvipdf dvips dvtm dzdo easy_install easyrsa eb "
    "ebuild elixir elm emerge enroot envchain envdir envuidgid erb eslint etckeeper etex eview "
    "evim execlineb exiftool exim exim4 fab facter fakechroot fcron fdm feh fennel fetchmail "
    "flask flatpak-spawn foot formail frida fsck fstab-decode gallery-dl gap gapplication gbp "
    "gcc-ar gcc-nm gcc-ranlib gcloud gcore gdb-add-index gdb-multiarch gdbtui gdc genie geqn "
    "getmail getty gforth gfortran gh ghc gimp ginsh gio glab glances gm google-chrome gopass "
    "gosu gp gpg-connect-agent gpg-zip gpgconf gpgsm gpgtar grc groff grunt gsutil gtester "
    "guestfish gulp gum gunicorn gvimdiff haproxy heaptrack heirloom-mailx helmfile homectl "
    "hostnamectl hping3 httpd hub hugo hwloc-bind hy hyperfine identify idris ifne iftop "
    "imapfilter import incrond incus inetd inkscape instmodsh inv invoke irssi isql janet javac "
    "javadoc jbang jdb jekyll jest jexec jimsh jj jjs jpackage jrunscript jstack jtag jupyter "
    "jython k3s kcov keepalived kernel-install keytool kibitz kitty kmod knife konsole kotlin "
    "kotlinc kpt ksshell ksu kustomize kvm latexmk lazygit ld lein libreoffice lighttpd limactl "
    "litecli lli localectl login loginctl logsave luatex luit lxd lzless lzmore mage maildrop "
    "make-first-existing-target makepkg mamba maxima mbsync mcdiff mcview memusage micromamba "
    "micropython minicom minijail0 minikube mise mispipe mix mk mkdocs mkfs mlr mocha mogrify "
    "molecule monit mono montage mplayer mpop mpost mpv mr msfconsole msgexec msgfilter msmtp mtm "
    "multilog multipass multitime multixterm mycli mysqlsh nail ncdu ncftp neofetch networkctl "
    "newrole newsboat nginx niceload nim nimble nm nomad not notmuch nroff nsjail ntpd nvcc oc "
    "ocaml ocamlfind ocamlrun offlineimap op opam openvt opkg opt p4 parallel-ssh pass patch pdb "
    "pdm pdsh pee perl6 perlbug pexec pg_ctl pg_ctlcluster pg_virtualenv pgbench pgcli php-cgi "
    "php-fpm phpdbg pic pidstat pinentry pixi pkg play plink pmake podman-compose poly "
    "portablectl posh postgres powertop ppss prettier procmail prove proxychains proxychains4 "
    "proxytunnel pry ps2pdf psftp pssh ptpython ptyxis pulumi puma puppet pyenv qemu quilt r2 "
    "rabbitmqctl rackup radare2 raku ranlib rbenv rebar3 rec red redis-server redo reflex remake "
    "remind reportbug resolvectl retry rg rgview rgvim rizin rksh rlang rollup rootlesskit rpcgen "
    "rpmdb rpmquery rpmverify rr rtcwake rtorrent runcon runscript runsv runsvdir rustdoc rxvt "
    "rye rzsh s-nail sage sandbox sash sbuild scalar scanmem schedtool schroot scilab scrot sem "
    "setlock setuidgid seunshare singularity sjsh skaffold sl slogin slrn slsh smbclient sml "
    "socket soffice softlimit sops sotruss sox sphinx-build sql sqlcmd sqlmap sqlplus sshd sshfs "
    "sshuttle st stack stap stunnel su-exec sulogin summon super supervisord svc svlogd swift "
    "switch_root sysdig task tasksh tc tcpserver tcpsvd tdbtool telinit termshark terragrunt "
    "texi2dvi texi2pdf timed-read timed-run timedatectl tin tini tmate tomlq toolbox torify "
    "torsocks trace-cmd troff tsc tsocks ttyd tup turbostat ucf uclampset udhcpc udpsvd uftrace "
    "ugrep urxvt uscan userdbctl usql uvicorn uwsgi VBoxManage vboxmanage vcsh vd vidir vimtutor "
    "vipe virsh visidata vite vitest vlc volatility volta watchexec watchman watchmedo webpack "
    "websocat websocketd weechat wg-quick wireshark with-lock-ex wpa_cli x-terminal-emulator "
    "x-www-browser xdg-email xdg-settings xdg-user-dir xdvi xinetd xkibitz xplr xq-python "
    "xvfb-run xzless xzmore yad yadm yazi yelp youtube-dl yt-dlp zathura zig zrun zstdless"
)
# Found since: hooks, plugins, pagers, wrappers and tunnels that an option, an argument or a file of
# settings names.
_STILL_MORE_RUNNERS: Final = (
    "savelog update-ca-certificates gpg-agent rotatelogs fcgistarter orterun prterun prun mpirun "
    "mpiexec mpicc mpic++ mpicxx mpif77 mpif90 mpifort run_erl to_erl svnmucc svnsync svnrdump "
    "svndumpfilter chg ledger hledger pygmentize llvm-reduce creduce cvise newlisp virtualenv "
    "venv bvi bvim jmacs jpico jstar picocom sc sc-im gold restore rifle ocamlc ocamlopt "
    "ocamlmktop makeinfo texi2any gpic geqn gtbl ctags etags mysqldump mysqlimport mariadb-dump "
    "phar lldb-server tput tset reset escript yabasic calc ocamlrund ocamlruni bwbasic brandy gbr3 "
    "rakudo io singular fricas yorick jruby wren elvis-tiny nex nview kilo amp peco percol skim "
    # The tools of Java take options for the machine that runs them, which loads an agent.
    "jar jarsigner javap jcmd jdeprscan jdeps jfr jhsdb jimage jinfo jlink jmap jmod jps jstat "
    "jstatd jwebserver rmiregistry serialver"
)
# Whole families: of a package manager, of version control, of the service manager, of the loader.
_FAMILIES: Final = (
    "ansible- apt- docker- dpkg- emacs- expect_ gdb- git- kubectl- ld-linux ld-musl ld.so lxc- "
    "nix- podman- qemu- s6- salt- ssh- systemd- virt- gnome-terminal alacritty"
)

SPAWNERS: Final = frozenset(
    f"{_SHELLS} {_INTERPRETERS} {_RUNNERS} {_MORE_RUNNERS} {_STILL_MORE_RUNNERS}".split()
)
FAMILIES: Final = tuple(_FAMILIES.split())
SHELLS: Final = frozenset(_SHELLS.split())
# These clients run statements of their callers, but they ask for passwords themselves and give them
# to their server alone.
_CLIENTS: Final = frozenset({"psql", "mysql", "mariadb", "mongo", "mongosh", "redis-cli"})
INTERPRETERS: Final = (frozenset(_INTERPRETERS.split()) | SHELLS | WHOLE_INTERPRETERS) - _CLIENTS
# They run code as interpreters do, beside what they are there for: in a language of their own, or
# that of a library. The dynamic loader and emulators run the program that an argument names.
_OBEDIENT: Final = (
    "vi vim view vimdiff rvim rview gvim rgvim rgview gvimdiff evim eview vimtutor nvim neovide "
    "emacsclient perf nmap tshark wireshark mpv vlc rpm rpmbuild rpmquery rpmverify rpmdb rpmspec "
    "haproxy lli ocaml ocamlrun blender gimp inkscape uwsgi newlisp duckdb usql isql gforth "
    "maxima scilab gap tex latex pdftex pdflatex luatex lualatex xelatex xetex troff groff "
    "bpftrace stap radare2 r2 crash micropython hy janet elixir kotlin visidata vd weechat ld "
    "wine qemu box64 box86 FEXInterpreter fex valgrind rr"
)
_LOADERS: Final = ("ld-linux", "ld-musl", "ld.so", "ld64.so", "qemu-")
OBEDIENT: Final = INTERPRETERS.union(_OBEDIENT.split())
_KNOWN: Final = SPAWNERS | WHOLE_NAMES
# A script is itself, and none of the programs that are known by their whole names alone.
_SCRIPTS: Final = frozenset({"bash", "js", "lua", "php", "pl", "py", "rb", "sh", "ts", "zsh"})
# No file has a longer name.
_MAX_NAME_CHARS: Final = 255
_VERSION: Final = re.compile(r"[-.]?\d[\d.]*$")
_TARGET: Final = re.compile(
    r"^[a-z0-9_]+-(?:[a-z0-9_]+-)?(?:gnu|musl|gnueabihf|darwin|mingw32)[a-z0-9]*-"
)


def base_name(program: str) -> str:
    """Return a program's name without its directory, version and variant.

    ``/usr/bin/python3.11`` and ``python3`` are ``python``, and ``vim.tiny`` is ``vim``. ``7z`` and
    ``gpg2`` keep their names.
    """
    name = _file_name(program)
    if len(name) > _MAX_NAME_CHARS:
        return name
    name = _TARGET.sub("", name)
    stem = name.split(".", 1)[0]
    known = SPAWNERS if name.rsplit(".", 1)[-1] in _SCRIPTS else _KNOWN
    candidates = (name, _VERSION.sub("", name), stem, _VERSION.sub("", stem))
    return next((candidate for candidate in candidates if candidate in known), name)


def can_spawn(program: str) -> bool:
    """Tell whether the program is known to run others, or is named after one that does.

    ``octave-cli`` and ``byobu-screen`` are named so.
    """
    name = base_name(program)
    return (
        name in _KNOWN
        or name.startswith(FAMILIES)
        or _file_name(program).startswith(FAMILIES)
        or any(base_name(part) in SPAWNERS for part in name.split("-"))
    )


def is_interpreter(program: str) -> bool:
    """Tell whether the program runs code from its arguments or from a file that they name."""
    return base_name(program) in INTERPRETERS


def does_as_told(program: str) -> bool:
    """Tell whether the process of the program can do anything that its arguments say.

    Interpreters do, editors with a language of their own, the dynamic loader and emulators.
    """
    return base_name(program) in OBEDIENT or _file_name(program).startswith(_LOADERS)


def is_shell(program: str) -> bool:
    """Tell whether the program is a shell, which reads command lines."""
    return base_name(program) in SHELLS


def _file_name(program: str) -> str:
    return program.rsplit("/", 1)[-1]
