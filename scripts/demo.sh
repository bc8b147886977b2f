#!/usr/bin/env bash
# Runs the example, and gets it a ZooKeeper where there is none. Arguments go to the example.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/zookeeper.sh

need_go
[ -n "${ZOOKEEPER_SERVERS:-}" ] || zk_ensure
exec go run ./examples/counter "$@"
