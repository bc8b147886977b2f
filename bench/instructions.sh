#!/usr/bin/env bash
# Counts the instructions of a contended acquisition, by this library and by zk.Lock: bench/instructions.sh [NAME OF A TEST BINARY].
# 8 sessions and their server run in one thread of one process, in virtual time, under valgrind. So the count is the same within
# 1 %, whatever else the machine does, on any processor. The server's part is included. The profiles stay, for callgrind_annotate.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

command -v valgrind >/dev/null || { printf 'valgrind is missing (on Debian: apt-get install valgrind).\n' >&2; exit 1; }
profiles=$(mktemp -d)
cost=${1:-$profiles/cost.test}
[ $# = 1 ] || go test -c -o "$cost" ./internal/behaviour/cost
cost=$(realpath "$cost")
cd internal/behaviour/cost

few=25 many=125 # acquisitions of each session; the difference leaves out start and end
# collected PEER TIMES: the instructions of a process.
collected() {
	# Go's signals, by which it interrupts goroutines, are more than valgrind can take, and RDTSCP is unknown to it.
	GODEBUG=asyncpreemptoff=1,cpu.rdtscp=off CONTEST_TIMES=$2 valgrind --tool=callgrind --callgrind-out-file="$profiles/$1.$2" \
		"$cost" -test.run "ProcessorCostOfSessionsThatContend/$1\$" 2>&1 >/dev/null | sed -n 's/.*Collected : //p'
}

for peer in zk.Lock recipes; do
	printf '%s: %d instructions an acquisition\n' "$peer" \
		$((($(collected "$peer" $many) - $(collected "$peer" $few)) / (8 * (many - few))))
done
printf 'profiles: %s\n' "$profiles"
