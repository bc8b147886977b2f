#!/usr/bin/env bash
# Runs the example: on the ZooKeeper that ZOOKEEPER_SERVERS names, else on an embedded one. Arguments go to the example.
# With --watch, four slow workers run on a zktest until they are interrupted. Its page shows them, and has buttons for faults.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/zookeeper.sh

need_go
if [[ ${1-} != --watch ]]; then
	exec go run ./examples/counter "$@"
fi
shift
dir=$(mktemp -d)
go build -o "$dir/" ./cmd/zktest ./examples/counter
"$dir/zktest" -servers 3 -with-parent >"$dir/out" &
trap 'kill $! 2>/dev/null || true; rm -rf "$dir"' EXIT
until [[ $(wc -l <"$dir/out") -ge 2 ]]; do sleep 0.1; done
{ read -r servers && read -r page; } <"$dir/out"
printf 'Watch the workers, and press the buttons: %s\n' "$page"
if [[ -n ${DISPLAY-}${WAYLAND_DISPLAY-} ]] && command -v xdg-open >/dev/null; then
	xdg-open "$page"
fi
ZOOKEEPER_SERVERS=$servers "$dir/counter" -work 500ms -increments 1000000 "$@"
