#!/usr/bin/env bash
# Runs the example: on the ZooKeeper that ZOOKEEPER_SERVERS names, else on an embedded one. Arguments go to the example.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/zookeeper.sh

need_go
exec go run ./examples/counter "$@"
