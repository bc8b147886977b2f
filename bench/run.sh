#!/usr/bin/env bash
# Installs what the peers need and this machine lacks (Debian's packages), measures, and writes RESULTS.md. Arguments go to
# the program: bench/run.sh --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/zookeeper.sh

# Their own services are not started: the bench runs servers of its own.
export RUNLEVEL=1

need_go
zk_ensure
# A peer that cannot be had is left out, and the report says so.
(curator_ensure) || true
missing=()
command -v redis-server >/dev/null || missing+=(redis-server)
if [ "${#missing[@]}" != 0 ]; then
	install_packages "${missing[@]}" || printf 'Not to be had here: %s.\n' "${missing[*]}" >&2
fi
if [ -z "${ZOOKEEPER_RUN:-}" ] && zk_local; then
	export ZOOKEEPER_RUN=local # the others run without containers too
fi

cd bench
# The etcd that go.mod names is newer than Debian's.
programs=$(mktemp -d)
trap 'rm -rf "$programs"' EXIT
go build -o "$programs/" ./etcd
PATH=$programs:$PATH go run . "$@"
