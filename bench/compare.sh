#!/usr/bin/env bash
# Tells whether the library at one commit costs more than at another: bench/compare.sh [OPTION]... OLD NEW. Both are measured by the
# bench of this work tree, in interleaved rounds on one ZooKeeper. Fails if something costs more. Options: go run . compare --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/zookeeper.sh

if [ $# -lt 2 ]; then
	printf 'usage: bench/compare.sh [OPTION]... OLD NEW (two commits)\n' >&2
	exit 2
fi
old=${*: -2:1} new=${*: -1} options=("${@:1:$#-2}")
need_go
zk_ensure
if [ -z "${ZOOKEEPER_RUN:-}" ] && zk_local; then
	export ZOOKEEPER_RUN=local # a container's processor time is not counted
fi

temp=$(mktemp -d)
clean_up() {
	git worktree remove --force "$temp/old" 2>/dev/null || true
	git worktree remove --force "$temp/new" 2>/dev/null || true
	rm -rf "$temp"
}
trap clean_up EXIT

# build NAME COMMIT: the worker of this work tree, with the library at the commit.
build() {
	git worktree add --quiet --detach "$temp/$1" "$2"
	cp go.mod "$temp/$1.mod"
	cp go.sum "$temp/$1.sum"
	go mod edit -replace="github.com/zkrecipes/recipes=$temp/$1" "$temp/$1.mod"
	go build -mod=mod -modfile="$temp/$1.mod" -o "$temp/worker-$1" ./worker
}

cd bench
build old "$old"
build new "$new"
status=0
go run . compare --out="$temp" "${options[@]}" "$temp/worker-old" "$temp/worker-new" || status=$?
if [ -e "$temp/new.txt" ]; then
	printf '\n'
	go tool benchstat "old=$temp/old.txt" "new=$temp/new.txt"
fi
exit "$status"
