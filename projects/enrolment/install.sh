#!/bin/sh
# Makes this machine a host of @SERVER@. Run again, it upgrades; sessions go on meanwhile.
#
#   curl -fsSL @SERVER@/install.sh | sudo sh -s -- --code enr_…
#   curl -fsSL @SERVER@/install.sh | sh -s -- --user --code enr_…      (without root)
#
# Everything comes from this server. --help lists the options.
set -eu

# A shell runs nothing of these braces before it has read the last one: a script that was cut on the
# way does nothing.
{
server='@SERVER@'
# One line for each bundle of this server: the platform, and the SHA-256 of the file.
bundles='@BUNDLES@'

code='' is_user='' is_dry='' action=install python='' ca_file='' run_as='' name='' sudo='' one_user='' more=''
# A proxy's password is not for the list of processes.
proxy=${HOLDLINE_PROXY-}
unset HOLDLINE_PROXY

help() {
  cat <<END
Options:
  --code CODE      enrol this host with a code of the server's operator
  --code-file FILE read the code from a file: no other user of this host sees it
  --user           install for this user alone, without root
  --run-as USER    whom the daemon and programs run as, with root (default: the daemon as
                   holdline, programs of a new host as holdline-run)
  --one-user       let programs of a new host run as holdline too
  --name NAME      the host's name, with a key for a number of hosts (default: its hostname)
  --label WORD     a label of the host; can be repeated
  --allow-sudo     let sudo work in sessions; --no-allow-sudo ends that (default: as it is, and
                   not on a new host)
  --replace        enrol a host that is enrolled already
  --ca-file FILE   authorities to trust instead of the system's
  --proxy URL      http://[USER:PASSWORD@]HOST:PORT
  --python FILE    the Python to use, 3.11 or newer
  --dry-run        say what would be done, and do nothing
  --upgrade        get the newest version only
  --uninstall      remove the daemon; --purge also removes credential and configuration,
                   --end-sessions ends what still runs
END
}

say() { printf '%s\n' "$*"; }
fail() { printf 'install.sh: %s\n' "$*" >&2; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }

while [ $# -gt 0 ]; do
  case $1 in
    --code | --code-file | --ca-file | --proxy | --python | --run-as | --name | --label) [ $# -gt 1 ] || fail "$1 needs a value" ;;
  esac
  case $1 in
    --code) code=$2; shift ;;
    --code-file) code=$(cat -- "$2") || fail "cannot read $2"; shift ;;
    --ca-file) ca_file=$2; shift ;;
    --proxy) proxy=$2; shift ;;
    --python) python=$2; shift ;;
    --run-as) run_as=$2; shift ;;
    --name) name=$2; shift ;;
    --label)
      case $2 in *[!A-Za-z0-9_.:=/-]*) fail 'a label has letters, digits and _.:=/-' ;; esac
      more="$more --label $2"; shift ;;
    --user) is_user=--user ;;
    --allow-sudo | --no-allow-sudo) sudo=$1 ;;
    --one-user) one_user=--one-user ;;
    --replace | --purge | --end-sessions) more="$more $1" ;;
    --dry-run) is_dry=yes ;;
    --upgrade) action=upgrade ;;
    --uninstall) action=uninstall ;;
    --help | -h) help; exit 0 ;;
    *) help >&2; fail "there is no option $1" ;;
  esac
  shift
done

case $server in
  https://*) ;;
  http://127.0.0.1 | http://127.0.0.1:* | http://localhost | http://localhost:* | http://\[::1\]*) ;;
  *) fail "$server is not encrypted, and this is not the server itself; use https://" ;;
esac

# ---- where it goes

if [ -n "$is_user" ]; then
  prefix=${XDG_DATA_HOME:-$HOME/.local/share}/holdline
  link=$HOME/.local/bin/holdline-controller
else
  prefix=/opt/holdline
  link=/usr/local/bin/holdline-controller
  [ -n "$is_dry" ] || [ "$(id -u)" = 0 ] || fail 'run it with sudo, or add --user'
fi
command=$prefix/bin/holdline-controller

# ---- what it needs

find_python() {
  for candidate in ${python:+"$python"} /usr/bin/python3 python3 python3.14 python3.13 python3.12 python3.11; do
    # -I: without it, modules are taken from whatever directory this was started in.
    if has "$candidate" && "$candidate" -I -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
}

need_python() {
  found=$(find_python)
  [ -n "$found" ] && return
  say 'install.sh: this needs Python 3.11 or newer.' >&2
  if has apt-get; then
    say '  Debian 12, Ubuntu 24.04 and newer: apt-get install python3' >&2
    say '  Ubuntu 22.04: apt-get install python3.11 (from universe)' >&2
  elif has dnf; then
    say '  dnf install python3.12' >&2
  fi
  exit 1
}

need_platform() {
  machine=$(uname -m)
  [ "$machine" != arm64 ] || machine=aarch64
  [ "$machine" != amd64 ] || machine=x86_64
  platform=$(uname -s | tr '[:upper:]' '[:lower:]')-$machine
  sum=$(printf '%s\n' "$bundles" | sed -n "s/^$platform //p")
  [ -n "$sum" ] || fail "$server has no bundle for $platform. Its operator makes one: bin/build-controller --platform $platform"
  # The musl of Alpine cannot load what is built for glibc.
  if [ "$platform" != "${platform#linux}" ] && ! "$found" -I -c 'import platform, sys; sys.exit(platform.libc_ver()[0] != "glibc")'; then
    fail 'this system has no glibc; the daemon needs it'
  fi
}

through_proxy() {
  if [ -n "$proxy" ]; then
    http_proxy=$proxy https_proxy=$proxy "$@"
  else
    "$@"
  fi
}

download() {
  if has curl; then
    # -q: what a .curlrc says is meant for other things.
    set -- --fail --silent --show-error --max-time 300 --output "$2" "$server$1"
    [ -z "$ca_file" ] || set -- --cacert "$ca_file" "$@"
    through_proxy curl -q "$@"
  elif has wget; then
    set -- --quiet --max-redirect=0 --timeout=60 --output-document="$2" "$server$1"
    [ -z "$ca_file" ] || set -- --ca-certificate="$ca_file" "$@"
    through_proxy wget "$@"
  else
    fail 'this needs curl or wget'
  fi
}

check_sum() {
  if has sha256sum; then
    real=$(sha256sum "$1")
  else
    real=$(shasum -a 256 "$1")
  fi
  [ "${real%% *}" = "$sum" ] || fail "the bundle has the SHA-256 ${real%% *}, but should have $sum"
}

# Removes versions that no process was started from; the newest stays. The memory of holders is
# hidden, also from their own user, and their command lines are not.
forget_old_versions() {
  [ -d /proc/1 ] || return 0
  # By their names: the path of one version can be spelled in more than one way.
  newest=$(basename "$(dirname "$(readlink "$prefix/bin")")")
  used=$(cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n')
  for version in "$prefix"/versions/*; do
    name=$(basename "$version")
    [ "$name" != "$newest" ] || continue
    case $used in *"/versions/$name/"*) ;; *) rm -rf "$version" ;; esac
  done
}

# ---- what it does

install_version() {
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  download "/bundle/holdline-controller-$platform.tar.gz" "$scratch/bundle.tar.gz"
  check_sum "$scratch/bundle.tar.gz"
  tar -xzf "$scratch/bundle.tar.gz" -C "$scratch"
  # The daemon's user has to reach it, whatever the umask of root.
  [ -n "$is_user" ] || umask 022
  mkdir -p "$prefix" "$(dirname "$link")"
  "$found" -I "$scratch/holdline-controller/unpack.py" "$prefix" >/dev/null
  ln -sf "$prefix/bin/holdline-controller" "$link"
  version=$("$link" --version) || fail "$link does not run"
  say "installed $version"
}

is_ours() {
  [ ! -e "$prefix" ] || [ -d "$prefix/versions" ] || [ -e "$prefix/pyvenv.cfg" ] || [ -z "$(ls -A "$prefix")" ]
}
remove_prefix() {
  rm -rf "$prefix/versions" "$prefix/bin" "$prefix"/.bin.* "$link"
  [ ! -d "$prefix" ] || rmdir "$prefix" 2>/dev/null || say "kept what else is in $prefix"
}

if [ "$action" = uninstall ]; then
  say "Remove the service and $prefix"
  [ -z "$is_dry" ] || exit 0
  if [ ! -e "$command" ]; then
    say 'nothing is installed'
    # An installation that was cut short has left this.
    if [ -d "$prefix/versions" ]; then remove_prefix; fi
    exit 0
  fi
  # A newer release of the system may have taken the Python away.
  "$command" --version >/dev/null 2>&1 || fail "$command does not run. Run this line without --uninstall first: it installs the daemon for the Python that is here"
  # These are lists of options.
  # shellcheck disable=SC2086
  "$command" service uninstall $is_user $more </dev/null
  # What cannot be listed may still run.
  told=$("$command" sessions) || told='  process '
  if printf '%s\n' "$told" | grep -q '  process '; then
    say "kept $prefix, which its sessions still use"
  else
    # The environment of an installation by hand is all ours. Else only what was put there goes.
    [ ! -e "$prefix/pyvenv.cfg" ] || rm -rf "$prefix"
    remove_prefix
    say "removed the daemon from $prefix"
  fi
  exit 0
fi

is_ours || fail "$prefix has files of something else, such as a server of Holdline; move them away first"
# Two installations would each write the unit anew at every upgrade of their own.
[ -n "$is_user" ] || [ ! -e /usr/lib/holdline-controller/bin/holdline-controller ] || fail 'this host has the Debian package holdline-controller: install a newer package, or remove it first'
need_python
need_platform
say "Install the daemon for $platform with $found into $prefix, from $server"
if [ "$action" = install ]; then
  if [ -n "$is_user" ]; then
    say "Make a service of $(id -un)"
  else
    say "Make, as far as they are missing: the user ${run_as:-holdline}, /etc/holdline, /var/lib/holdline-controller and the service"
    [ -n "$run_as$one_user" ] || say 'On a new host programs run as a user of their own, holdline-run'
  fi
  [ -z "$code" ] || say 'Enrol this host with the code, and start the service'
else
  say 'Start the service again with it; sessions go on'
fi
[ -z "$is_dry" ] || exit 0

install_version
if [ "$action" = install ]; then
  set -- --server "$server" $is_user $sudo $one_user
  [ -z "$ca_file" ] || set -- "$@" --ca-file "$ca_file"
  [ -z "$run_as" ] || set -- "$@" --run-as "$run_as"
  [ -z "$name" ] || set -- "$@" --name "$name"
  [ -z "$code" ] || set -- "$@" --code -
  # The code goes through a pipe and the proxy through the environment: other users see neither.
  # These are lists of options.
  # shellcheck disable=SC2086
  printf '%s\n' "$code" | HOLDLINE_PROXY=$proxy "$link" service install "$@" $more
else
  "$link" service start $is_user
fi
forget_old_versions
exit
}
