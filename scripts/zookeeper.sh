# Sees to it that a ZooKeeper can be run; to be sourced, by bash, from the root of the repository.
#
# It looks where internal/zkserver does, for a container engine and for a local installation. Where there is neither it
# installs Debian's packages if it may, else it says in a sentence what is missing and exits. The same for Curator,
# kazoo and Node.js, with which interop runs, for the shells and the browser that zklock's tests need, for a Kerberos, and for what checks the models.
# shellcheck shell=bash

# step names what comes next, and when.
step() { printf '\n== %s (%d s)\n' "$*" "$SECONDS"; }

die() {
	printf '%s\n' "$*" >&2
	exit 1
}

# The library of ZooKeeper with a runtime to run it. The package "zookeeper" is no more than these, with a desktop's Java.
zk_packages=(default-jre-headless libzookeeper-java)

zk_local() {
	if [ -n "${ZOOKEEPER_HOME:-}" ]; then
		compgen -G "$ZOOKEEPER_HOME/lib/zookeeper*.jar" >/dev/null || return 1
	else
		[ -e /usr/share/java/zookeeper.jar ] || return 1
	fi
	command -v "${JAVA_HOME:+$JAVA_HOME/bin/}java" >/dev/null
}

# The sockets where testcontainers looks too.
zk_engine() {
	local socket
	case ${DOCKER_HOST:-} in
	'') ;;
	unix://*) zk_engine_at "${DOCKER_HOST#unix://}"; return ;;
	*) return 0 ;; # elsewhere; whoever sets it knows
	esac
	for socket in /var/run/docker.sock "${XDG_RUNTIME_DIR:-/nowhere}/docker.sock" "$HOME/.docker/run/docker.sock" \
		"$HOME/.docker/desktop/docker.sock"; do
		if zk_engine_at "$socket"; then return 0; fi
	done
	return 1
}

zk_engine_at() {
	[ -S "$1" ] && [ -w "$1" ] || return 1
	command -v curl >/dev/null || return 0
	curl --silent --fail --max-time 10 --output /dev/null --unix-socket "$1" http://localhost/_ping
}

curator_local() {
	[ -n "${CURATOR_CLASSPATH:-}" ] || [ -e /usr/share/java/curator-recipes.jar ] || return 1
	command -v "${JAVA_HOME:+$JAVA_HOME/bin/}javac" >/dev/null
}

kazoo_local() {
	local python
	for python in ${KAZOO_PYTHON:-python3 /usr/bin/python3}; do
		if "$python" -c "import kazoo" 2>/dev/null; then return 0; fi
	done
	return 1
}

node_local() { command -v node >/dev/null; }

shells_local() {
	local shell
	for shell in bash zsh fish; do
		command -v "$shell" >/dev/null || return 1
	done
	[ -e /usr/share/bash-completion/bash_completion ]
}

chromium_local() {
	local browser
	for browser in chromium chromium-browser google-chrome; do
		if command -v "$browser" >/dev/null; then return 0; fi
	done
	return 1
}

kerberos_local() {
	local program
	for program in krb5kdc kdb5_util kadmin.local kinit; do
		PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null || return 1
	done
	compgen -G "/usr/lib/*/faketime/libfaketime.so.1" >/dev/null && [ -e /usr/share/java/zookeeper.jar ] && zk_local
}

spin_local() { command -v spin >/dev/null && command -v gcc >/dev/null; }

install_packages() {
	local root=()
	command -v apt-get >/dev/null || return 1
	if [ "$(id -u)" != 0 ]; then
		may_install "$@" || return 1
		root=(sudo -n)
	fi
	printf 'Installing %s …\n' "$*" >&2
	{ "${root[@]}" apt-get update --quiet &&
		"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install --quiet --yes --no-install-recommends \
			"$@"; } </dev/null >&2
}

# may_install tells whether packages may be installed with sudo: in CI, if INSTALL says yes (scripts/test.sh --yes), or
# if whoever sits at the terminal agrees.
may_install() {
	local answer
	sudo -n true 2>/dev/null || return 1
	if [ -n "${CI:-}" ] || [ "${INSTALL:-}" = yes ]; then return 0; fi
	[ -t 0 ] && [ -t 2 ] || return 1
	read -r -p "Install $* with sudo? [y/N] " answer
	[ "$answer" = y ] || [ "$answer" = Y ]
}

need_go() {
	command -v go >/dev/null || die "Go is missing: install the version of go.mod, or later, from https://go.dev/dl."
}

zk_ensure() {
	if zk_local || zk_engine; then return 0; fi
	install_packages "${zk_packages[@]}" || die "ZooKeeper is missing: start a container engine (Docker, or Podman with its Docker socket)," \
		"or install a Java runtime and ZooKeeper (on Debian, as root: apt-get install ${zk_packages[*]})."
}

# ensure NAME WHAT ELSEWHERE PACKAGE... installs Debian's packages unless NAME_local says that they are there. WHAT is missing
# otherwise, and ELSEWHERE says what to do on another system.
ensure() {
	local there=$1_local what=$2 elsewhere=$3
	shift 3
	if "$there"; then return 0; fi
	{ install_packages "$@" && "$there"; } || die "$what missing: install (on Debian, as root: apt-get install $*$elsewhere)."
}

# The other side of interop, and a compiler for its program.
curator_ensure() {
	ensure curator "Curator or a JDK is" "; elsewhere a JDK in JAVA_HOME or PATH, and CURATOR_CLASSPATH with its jars and what they need" \
		default-jdk-headless libcurator-recipes-java
}

# Python's client, whose locks stand in the same queues.
kazoo_ensure() {
	ensure kazoo "kazoo, ZooKeeper's client for Python, is" "; elsewhere pip install kazoo, and name that Python in KAZOO_PYTHON" \
		python3-kazoo
}

# What runs the lines for Node.js of docs/appendix/zktest-java-python.md.
node_ensure() { ensure node "Node.js is" '' nodejs; }

# The shells that zklock has completions for, and the package that bash's must work with and without.
shells_ensure() { ensure shells "bash, bash-completion, zsh or fish is" '' bash bash-completion zsh fish; }

# A browser, for the pages of zklock serve.
chromium_ensure() { ensure chromium "Chromium is" '' chromium; }

# A Kerberos of the tests' own: its server, its tools, and a wrong clock. A server in a container would see neither its key nor the
# Kerberos on loopback: it has to be a local one. It is Debian's, which docs/appendix/kerberos-login.md starts.
kerberos_ensure() {
	ensure kerberos "Kerberos or a local ZooKeeper is" '' krb5-kdc krb5-admin-server krb5-user faketime "${zk_packages[@]}"
}

# What checks the models: it makes a program in C of each.
spin_ensure() { ensure spin "spin or a C compiler is" "; elsewhere from https://spinroot.com" spin gcc libc6-dev; }
