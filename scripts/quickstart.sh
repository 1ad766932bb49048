#!/bin/sh
# Installs what is missing, then runs the quick start: a Redis of its own, real crontab files, 40,000 jobs, a scheduler
# and a stock BullMQ worker, and a count at the end. Exit 0 only when nothing was lost, doubled or early.
#
#   scripts/quickstart.sh              about a minute
#   scripts/quickstart.sh --keep       leaves everything running until Ctrl-C
set -eu
cd "$(dirname "$0")/.."

./scripts/setup.sh redis
exec node --import tsx examples/quickstart/main.ts "$@"
