#!/usr/bin/env bash
# Builds and vets what the machine at hand would not: for other systems, and by the oldest Go of go.mod. The code that is sensitive
# to the width of an int is tested with 32 bits.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/zookeeper.sh

need_go
library=(. ./zktest ./cmd/zktest)
for system in darwin windows; do
	printf 'for %s\n' "$system"
	GOOS=$system CGO_ENABLED=0 go vet "${library[@]}"
	(cd kerberos && GOOS=$system CGO_ENABLED=0 go build .)
done
(cd cmd/zklock && GOOS=darwin CGO_ENABLED=0 go vet .)

printf 'with 32 bits\n'
GOARCH=386 go vet ./...
probe=$(mktemp)
trap 'rm -f "$probe"' EXIT
GOARCH=386 GOOS=linux go test -c -o "$probe" ./internal/zkpath
if ! "$probe" -test.run '^$'; then # a kernel can be built without them
	printf 'This machine executes no 32-bit programs of Linux: the tests were vetted, but not run with 32 bits.\n'
else
	GOARCH=386 ORDER_SEEDS=1000 go test -count=1 -skip '^TestModel(RefutesFaults|Exhaustively)$' \
		./internal/{dial,wire,order,seqname,outcome,calls,reliance,lossclock,zkpath,znode,leases,lockcache,seqnode,zkconn,observe} \
		./internal/behaviour/{election,semaphore} ./zktest
fi

oldest=go$(go mod edit -json | sed -n 's/^\t"Go": "\(.*\)",\{0,1\}$/\1/p')
if GOTOOLCHAIN=$oldest go version; then
	GOTOOLCHAIN=$oldest go vet ./...
	(cd kerberos && GOTOOLCHAIN=$oldest go vet .)
else
	[ -z "${CI:-}" ] || die "$oldest cannot be fetched: the oldest Go of go.mod is not tested."
	printf '%s cannot be fetched: not built with it.\n' "$oldest"
fi
