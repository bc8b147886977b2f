#!/usr/bin/env bash
# Compares zktest with a real server in one run, Debian's ZooKeeper with its default settings, and prints a table: how long its start
# takes, how many pairs of a create and a delete it does in a second for 16 users of one connection, how much memory it has then, by
# how much that grows in 30 seconds more, and how much it has with 1,000 clients and 100,000 znodes of 100 bytes. It takes 2 minutes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/zookeeper.sh

need_go
zk_local || die "There is no ZooKeeper on this machine (Debian: apt-get install libzookeeper-java)."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/zktest" ./cmd/zktest
go build -o "$work/compare" ./scripts/testdata/compare
cat >"$work/zoo.cfg" <<CFG
dataDir=$work/data
clientPort=21881
clientPortAddress=127.0.0.1
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=*
CFG

printf '| server | start | create+delete, 1/s | memory, idle | growth in 30 s of writes | memory, 1,000 clients, 100,000 znodes |\n'
printf '| --- | ---: | ---: | ---: | ---: | ---: |\n'
"$work/compare" zktest 127.0.0.1:21882 "$work/zktest" -listen 127.0.0.1:21882 -with-parent
"$work/compare" ZooKeeper 127.0.0.1:21881 java -cp /usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar \
	-Dorg.slf4j.simpleLogger.defaultLogLevel=error org.apache.zookeeper.server.quorum.QuorumPeerMain "$work/zoo.cfg"
