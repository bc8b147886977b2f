#!/usr/bin/env bash
# Passes all checks and tests of a change: scripts/test.sh [--yes]
#
# It is for before a commit is shared; between two edits, "go test ./..." is enough. What a change touched decides whether some
# parts are run: those have their own pattern of files below. ALL=yes runs every part, as scripts/soak.sh does.
#
# It installs a ZooKeeper, a Curator, a kazoo, a Node.js and, where they are needed, shells, a Kerberos and spin if there are none,
# from Debian's packages. With sudo it does so only in CI, with --yes, or if you agree. In CI (CI is set) there has to be a
# container engine for the smoke set.
#
# It goes on where something fails, and says at its end what failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/zookeeper.sh

case ${1:-} in
--yes) export INSTALL=yes ;;
'') ;;
*) die "scripts/test.sh knows only --yes. For some of the tests: go test -run NAME ./..." ;;
esac
printf 'This takes about 10 minutes on two cores; go test ./... takes about two.\n'

lint=github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

# go-zookeeper v1.0.4 has a data race of its own, on lastZxid at a reconnect (its conn.go:614 and 849), which would fail whatever test
# comes across it. So the client alone is built without the race detector's instrumentation.
race=(-race "-gcflags=github.com/go-zookeeper/zk=-race=false")

# What differs from main, or, on main, what the last commit changed.
changed=$(
	base=$(git merge-base HEAD origin/main 2>/dev/null || git merge-base HEAD main 2>/dev/null) || exit 0
	[ "$base" != "$(git rev-parse HEAD)" ] || base=$(git rev-parse --quiet --verify HEAD~1) || exit 0
	git diff --name-only "$base"
	git ls-files --others --exclude-standard
)

# touched tells whether a change touched files that match a pattern; without git, it may have.
touched() { [ -n "${ALL:-}" ] || [ -z "$changed" ] || grep -qE "$1" <<<"$changed"; }

told=$(mktemp)
trap 'rm -f "$told"' EXIT
failed=0

# part NAME COMMAND...
part() {
	local began=$SECONDS name=$1
	shift
	printf '\n== %s\n' "$name" | tee -a "$told"
	if "$@" 2>&1 | tee -a "$told"; then
		printf '(%d s)\n' $((SECONDS - began))
	else
		failed=$((failed + 1))
		printf '(%d s) -- FAILED: %s\n' $((SECONDS - began)) "$name" | tee -a "$told"
	fi
}

formatted() {
	local unformatted
	unformatted=$(gofmt -l .)
	[ -z "$unformatted" ] || die "gofmt would change: $unformatted"
}

# compiles checks that a module still goes with the library, and linted that it is as the linters want it.
compiles() { (cd "$1" && go mod tidy -diff && go vet ./...); }
linted() { (cd "$1" && go run "$lint" run); }

# go vet has seen all of a module before go test runs, which would vet it again, for the race detector from scratch.
tests=(test -vet=off -count=1 -timeout 20m)

# module checks a module beside the library's. If the change touched it, it is linted and tested, too:
# module DIR PATTERN [FLAG OF GO TEST]...
module() {
	part "$1, a module of its own: checks" compiles "$1"
	if touched "^$1/|$2|^\.golangci"; then part "$1: linters" linted "$1"; fi
	if touched "^$1/|$2"; then part "$1: tests" go -C "$1" "${tests[@]}" "${@:3}" ./...; fi
}

# No server has its children in order: what forgets to sort them is to fail here. And nothing is skipped that a machine can have.
export ZKTEST_SHUFFLE=yes MUST=1
unset ZOOKEEPER_RUN ZOOKEEPER_SERVERS

need_go
zk_ensure
curator_ensure
kazoo_ensure
node_ensure

part gofmt formatted
part "the library: checks" compiles .
part "the library: linters" linted .
if touched '^\.github/'; then
	part "the workflows" go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12 -shellcheck= -pyflakes=
fi

if zk_engine; then
	part "the smoke set, on containers" env ZOOKEEPER_RUN=container go "${tests[@]}" -run Smoke ./internal/zkserver .
elif [ -n "${CI:-}" ]; then
	part "the smoke set, on containers" die "CI runs the smoke set on containers, and no container engine answers."
else
	part "the smoke set, on real servers" env ZOOKEEPER_RUN=real go "${tests[@]}" -run Smoke ./internal/zkserver .
fi

# Values have no goroutines, and what runs go or other programs has none of the library's: the race detector would only cost time.
plain='/(examples|test/interop|internal/(acceptor|api|behaviour/cost|digestmd5|lossclock|order|outcome|pages|plant|seqname|simulator|zkpath))($|/)'
# Of the same few goroutines it would see thousands of runs that differ in their times alone, or in what they are about.
times='TestTheCutsThatAreNoLoss|TestTheAnswersThatAreNoLoss|TestNotToKnowAtAnyMomentOfAnOutage|TestWhereAWaiterStood'
times+='|TestLostBehindAFollowerThatDies.*|TestLostWithASessionBelowTwoTicks|TestALossMarginIsNoFalseAlarm|TestAConnThatFails'
sizes='TestCost|TestTooManyRegistrations|TestMemory|TestTheLogIsForgotten|TestAnHourOfWrites|TestSettingJuteMaxBuffer|TestLargestData'
scripts='TestConformance.*|TestStuckInABubble|TestItKnowsWhatInspectSays'
sweeps="^($times|$sizes|$scripts)\$"
# shellcheck disable=SC2046 # one argument for each package
part "go test -race, in virtual time where it can be" \
	go "${tests[@]}" "${race[@]}" -skip "$sweeps" $(go list ./... | grep -vE "$plain")
part "go test, sweeps of times, sizes and scripts" \
	go "${tests[@]}" -run "$sweeps" ./internal/behaviour/{hold,lock} ./internal/serve/survey ./zktest
# shellcheck disable=SC2046
part "go test, of what has no use for the race detector" \
	env ORDER_SEEDS=20000 SIM_SEEDS=300 SIM_DEFECTS=1 go "${tests[@]}" $(go list ./... | grep -E "$plain")

if touched '^(go\.mod|scripts/builds\.sh|.*_(darwin|linux|unix|other|windows|386|amd64)\.go)$'; then
	part "other systems, 32 bits and the oldest Go" scripts/builds.sh
fi
if touched '^(test/model/|internal/acceptor/|scripts/model)'; then
	spin_ensure
	part "the models" scripts/model.sh --quick
fi

# Some without the race detector: the clients of etcd and redis, and SQLite's driver, would have to be built for it.
module internal/zkserver/containers '^internal/zkserver/'
module test/chaos '^internal/(simulator|witness|zkserver)/' "${race[@]}"
if touched '^(kerberos|internal/(kdc|dial))/'; then kerberos_ensure; fi
module kerberos '^internal/(kdc|dial)/' "${race[@]}"
if touched '^cmd/zklock/'; then
	shells_ensure
	chromium_ensure
fi
module cmd/zklock '^test/chaos/faults/|^internal/(dial|observe|order|outcome|seqname|serve|simulator|witness|zkpath)/|^[^/]*\.go$'
module otelrecipes '^event\.go$' "${race[@]}"
if touched '^(otelrecipes/example|scripts/testdata/rules)/'; then
	part "the alerts" go -C scripts/testdata/rules run . "$PWD"/otelrecipes/example/alerts{,-zklock}.yml
fi
module examples/leader '^$'
module adapters/gocronlock '^$' "${race[@]}"
module adapters/gooselock '^$' "${race[@]}"
module bench '^internal/(zkserver|seqnode|znode|order)/'
if touched '^bench/'; then part "a short round of bench" go -C bench run . --short; fi

if [ "$failed" != 0 ]; then
	printf '\n== %d parts failed, after %d min\n' "$failed" $((SECONDS / 60))
	grep -E -A 12 '^ *--- FAIL|^FAIL|-- FAILED: |^panic: |DATA RACE|^[^ ]+\.go:[0-9]+:[0-9]+: ' "$told" | head -n 200 || true
	exit 1
fi
printf '\npassed in %d min %d s\n' $((SECONDS / 60)) $((SECONDS % 60))
