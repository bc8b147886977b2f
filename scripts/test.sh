#!/usr/bin/env bash
# Passes all checks and tests: scripts/test.sh [--quick | --yes] [ARGUMENT OF THE MAIN GO TEST]...
#
# --quick is for the time between two edits: it needs nothing but Go, and runs what can be run on zktest.
#
# It installs a ZooKeeper, a Curator, a kazoo, a Node.js, shells, a Kerberos and spin if there are none, from Debian's packages. With sudo it
# does so only in CI, with --yes, or if you agree.
#
# Where both are there, the tests run on local servers, which start three times as fast, and the smoke set once more on
# containers. In CI (CI is set) the smoke set must run: there has to be a container engine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/zookeeper.sh

quick=
case ${1:-} in
--quick) quick=yes && shift ;;
--yes) export INSTALL=yes && shift ;;
esac
if [ -n "$quick" ]; then
	printf 'This takes about 2 minutes on two cores.\n'
else
	printf 'This takes about 20 minutes on two cores; scripts/test.sh --quick takes about 2.\n'
fi

lint=github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

# go-zookeeper v1.0.4 has a data race of its own, on lastZxid at a reconnect (its conn.go:614 and 849), which would fail whatever test
# comes across it. So the client alone is built without the race detector's instrumentation.
race=(-race "-gcflags=github.com/go-zookeeper/zk=-race=false")

# module checks and tests a module beside the library's: module DIR [FLAG OF GO TEST]...
module() {
	step "$1, a module of its own: checks, tests"
	(cd "$1" && go mod tidy -diff && go vet ./... && go run "$lint" run && go test -count=1 "${@:2}" ./...)
}

# No server has its children in order: what forgets to sort them is to fail here.
export ZKTEST_SHUFFLE=yes

need_go
if [ -z "$quick" ]; then
	zk_ensure # also with ZOOKEEPER_SERVERS: many tests kill their servers
	curator_ensure
	kazoo_ensure
	node_ensure
	shells_ensure
	kerberos_ensure
	spin_ensure
fi

step gofmt
unformatted=$(gofmt -l .)
[ -z "$unformatted" ] || die "gofmt would change: $unformatted"

step go mod tidy
go mod tidy -diff

step go vet
go vet ./...

if [ -n "$quick" ]; then
	step go test, on zktest
	# shellcheck disable=SC2046 # one argument for each package
	ZOOKEEPER_RUN=embedded SIM_SEEDS=30 ORDER_SEEDS=1000 go test -short -parallel 8 -skip '^TestConformance' "$@" \
		$(go list ./... | grep -v -e '/internal/zkserver$' -e '/interop$')
	exit
fi

step the workflows
go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12 -shellcheck= -pyflakes=

if [ -z "${ZOOKEEPER_RUN:-}" ]; then
	if zk_engine; then
		step the smoke set, on containers
		ZOOKEEPER_RUN=container go test "${race[@]}" -count=1 -run Smoke ./internal/zkserver .
	elif [ -n "${CI:-}" ]; then
		die "CI runs the smoke set on containers, and no container engine answers."
	else
		step no container engine answers: the smoke set is not run on containers
	fi
	if zk_local; then export ZOOKEEPER_RUN=local; fi
fi

step building the tests
go test "${race[@]}" -count=1 -run '^$' ./... >/dev/null

# What computes runs at the lowest priority beside what waits: most tests of the locks wait for pauses of servers and clients,
# and some measure time. Its output comes at the end.
computes() {
	step golangci-lint
	go run "$lint" run
	step other systems, 32 bits and the oldest Go
	scripts/builds.sh
	step the models
	scripts/model.sh --quick
	step internal/order, without the race detector: it is a value, and has no goroutine
	go test -count=1 "$@" ./internal/order
	step internal/simulator
	go test "${race[@]}" -count=1 -timeout 20m "$@" ./internal/simulator
}
computed=$(mktemp)
set -m # in a process group of its own, which ends with this script
(renice -n 19 "$BASHPID" >/dev/null && computes "$@") >"$computed" 2>&1 &
computing=$!
set +m
trap 'kill -- "-$computing" 2>/dev/null || true; rm -f "$computed"' EXIT

# One package at a time: a test that measures time has the machine to itself, but for what computes.
step "go test, on ${ZOOKEEPER_SERVERS:-${ZOOKEEPER_RUN:-container} servers}"
# shellcheck disable=SC2046 # one argument for each package
go test "${race[@]}" -count=1 -p 1 -parallel 8 -timeout 20m "$@" $(go list ./... | grep -Ev '/internal/(order|simulator)$')

# What the race detector would see here it has seen before. Most of these tests wait for pauses of the client.
step the tests of the locks once more, on zktest
ZOOKEEPER_RUN=embedded go test -count=1 -p 1 -parallel 8 "$@" . ./internal/behaviour/... ./internal/hazards

# Some without the race detector: the clients of etcd and redis, and SQLite's driver, would have to be built for it.
module internal/zkserver/containers
module chaos "${race[@]}"
ZOOKEEPER_RUN=local module kerberos "${race[@]}" -parallel 8
module cmd/zklock
module otelrecipes "${race[@]}"
module examples/leader
module adapters/gocronlock "${race[@]}"
module adapters/gooselock

step "what computes has come to its end"
wait "$computing" && failed= || failed=yes
cat "$computed"
[ -z "$failed" ] || die "What computes failed: see above."

# Last, and alone: it compares times.
module bench
(cd bench && go run . --short)
