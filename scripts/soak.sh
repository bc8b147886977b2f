#!/usr/bin/env bash
# What is too long for each change: new seeds of the simulator, chaos on a real ensemble, a minute of each fuzz target,
# the tests on a Keeper, those of other clients, known vulnerabilities, and small faults that the tests have to find. What it
# finds, it prints with the seed or the input that shows it again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/zookeeper.sh

need_go
zk_ensure
curator_ensure
kazoo_ensure
node_ensure
shells_ensure
kerberos_ensure
spin_ensure

step all parts of the gate
ALL=yes scripts/test.sh

step the tests of the locks, on real servers
ZOOKEEPER_RUN=real MUST=1 go test -count=1 -p 1 -parallel 8 -timeout 30m . ./internal/behaviour/... ./internal/hazards ./internal/wiretap

step the models, the large ones too
scripts/model.sh

step all histories of small settings
ORDER_EXHAUSTIVE=1 go test -count=1 -run '^TestModelExhaustively$' ./internal/order

step a minute of each fuzz target
scripts/fuzz.sh

step the crontab of zklock, run by cron
if [ "$(id -u)" = 0 ] && command -v cron >/dev/null && command -v unshare >/dev/null; then
	(cd cmd/zklock && ZKLOCK_CRON=1 go test -count=1 -run '^TestCrontab$' .)
else
	printf 'It needs root, cron and unshare: not run.\n'
fi

step zklock prove on three machines, which are network namespaces
if [ "$(id -u)" = 0 ] && command -v ip >/dev/null; then
	(cd cmd/zklock && ZKLOCK_NETNS=1 go test -count=1 -run '^TestProveOver' .)
else
	printf 'It needs root, and ip: not run.\n'
fi

step new seeds
SIM_FROM=${SIM_FROM:-$((RANDOM * 100000))} SIM_SEEDS=${SIM_SEEDS:-20000} \
	go test -run '^TestSimulator$' -timeout 0 ./internal/simulator

step new seeds, on Keepers
SIM_KEEPER=1 SIM_FROM=${SIM_FROM:-$((RANDOM * 100000))} SIM_SEEDS=${SIM_KEEPER_SEEDS:-5000} \
	go test -run '^TestSimulator$' -timeout 0 ./internal/simulator

step new seeds, with slow answers and slow disks
SIM_SLOW=1 SIM_FROM=${SIM_FROM:-$((RANDOM * 100000))} SIM_SEEDS=${SIM_SLOW_SEEDS:-5000} \
	go test -run '^TestSimulator$' -timeout 0 ./internal/simulator

step the tests of the locks, on an imitated Keeper
ZOOKEEPER_RUN=keeper go test -count=1 -p 1 . ./internal/behaviour/... ./internal/hazards

step eight hours of 64 processes
SIM_SEED=$RANDOM SIM_LONG=${SIM_LONG:-8h} \
	go test -run '^TestSimulatorForLong$' -timeout 0 ./internal/simulator

step new traces, which the model of the queue has to accept
SIM_FROM=${SIM_FROM:-$((RANDOM * 100000))} SIM_TRACES=${SIM_TRACES:-2000} \
	go test -run '^TestTraces$' -timeout 0 ./internal/simulator

step new histories of the order
ORDER_FROM=${ORDER_FROM:-$((RANDOM * 1000000))} ORDER_SEEDS=${ORDER_SEEDS:-2000000} \
	go test -run '^TestModelSeeds$' -timeout 0 ./internal/order

step chaos
(cd test/chaos && MUST=1 CHAOS=${CHAOS:-30m} go test -timeout 0 .)

step zklock prove, on a real ensemble, with planted defects, and with clocks that are wrong
(cd cmd/zklock && MUST=1 PROVE=${PROVE:-10m} PROVE_DEFECTS=1 go test -count=1 -timeout 0 -v \
	-run '^(TestDefects|TestOnARealEnsemble|TestWorkersWhoseClockIsWrong)$' ./internal/prove)

step what zklock serve shows, next to what Java, Python and Go say of themselves
(cd cmd/zklock && MUST=1 ZKLOCK_COMPARE=${ZKLOCK_COMPARE:-10m} go test -count=1 -timeout 0 \
	-run '^TestThePageSaysWhatTheProgramsSay$' .)

step the tests of other clients, on zktest
scripts/foreign.sh --look

step known vulnerabilities
scripts/vulnerabilities.sh

step planted faults, which the tests have to find
scripts/mutants.sh
