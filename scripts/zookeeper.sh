# Sees to it that a ZooKeeper can be run; to be sourced, by bash, from the root of the repository.
#
# It looks where internal/zkserver does, for a container engine and for a local installation. Where there is neither it
# installs Debian's packages if it may, else it says in a sentence what is missing and exits.
# shellcheck shell=bash

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

zk_install() {
	local root=()
	command -v apt-get >/dev/null || return 1
	if [ "$(id -u)" != 0 ]; then
		sudo -n true 2>/dev/null || return 1
		root=(sudo -n)
	fi
	printf 'Installing %s …\n' "${zk_packages[*]}" >&2
	{ "${root[@]}" apt-get update --quiet &&
		"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install --quiet --yes --no-install-recommends \
			"${zk_packages[@]}"; } </dev/null >&2
}

need_go() {
	command -v go >/dev/null || die "Go is missing: install the version of go.mod, or later, from https://go.dev/dl."
}

zk_ensure() {
	if zk_local || zk_engine; then return 0; fi
	zk_install || die "ZooKeeper is missing: start a container engine (Docker, or Podman with its Docker socket)," \
		"or install a Java runtime and ZooKeeper (on Debian, as root: apt-get install ${zk_packages[*]})."
}
