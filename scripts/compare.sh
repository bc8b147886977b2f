#!/usr/bin/env bash
# Compares zktest with a real server in one run, and prints a table for docs/appendix/zktest-java-python.md: how long the start takes, how many pairs of a
# create and a delete it does in a second for 16 users of one connection, how much memory it has after the start, by how much that
# grows in 30 seconds of writes, or those of LASTING (15m; the real server then writes 2 GB to the disk), and how much it has with
# 1,000 clients and 100,000 znodes of 100 bytes. The real server is Debian's ZooKeeper, or that of ZOOKEEPER_HOME, with its default
# settings. It takes 2 minutes. Run it on an idle machine.
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

printf '| server | start | create+delete, 1/s | memory, idle | growth in %s of writes | memory, 1,000 clients, 100,000 znodes |\n' "${LASTING:=30s}"
printf '| --- | ---: | ---: | ---: | ---: | ---: |\n'
"$work/compare" "$LASTING" zktest 127.0.0.1:21882 "$work/zktest" -listen 127.0.0.1:21882 -with-parent
jars=/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar
[ -z "${ZOOKEEPER_HOME:-}" ] || jars=$ZOOKEEPER_HOME/lib/*
"$work/compare" "$LASTING" ZooKeeper 127.0.0.1:21881 java -cp "$jars" \
	-Dorg.slf4j.simpleLogger.defaultLogLevel=error org.apache.zookeeper.server.quorum.QuorumPeerMain "$work/zoo.cfg"
