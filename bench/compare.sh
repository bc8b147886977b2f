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
refs=("${@: -2}")
options=("${@:1:$#-2}")
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

cd bench
for i in 0 1; do
	version=$([ "$i" = 0 ] && echo old || echo new)
	git worktree add --quiet --detach "$temp/$version" "${refs[$i]}"
	# The worker of this work tree, with the library of the other one.
	cp go.mod "$temp/$version.mod"
	cp go.sum "$temp/$version.sum"
	go mod edit -replace="github.com/zkrecipes/recipes=$temp/$version" "$temp/$version.mod"
	go build -mod=mod -modfile="$temp/$version.mod" -o "$temp/worker-$version" ./worker
done
status=0
go run . compare --out="$temp" "${options[@]}" "$temp/worker-old" "$temp/worker-new" || status=$?
printf '\n'
go tool benchstat "old=$temp/old.txt" "new=$temp/new.txt"
exit "$status"
