#!/bin/sh
# Set-up, lint, types, build, unused code and every test. The last line is "N passed, N failed", where a step that
# fails counts as one failure; the exit code is 0 only when nothing failed.
set -u
cd "$(dirname "$0")/.." || exit 1

WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
BROKEN=0

step() {
  name=$1
  shift
  echo
  echo "== $name"
  started=$(date +%s)
  if "$@" </dev/null; then
    echo "== $name: ok, $(($(date +%s) - started)) s"
  else
    BROKEN=$((BROKEN + 1))
    echo "== $name: FAILED, $(($(date +%s) - started)) s"
  fi
}

step set-up ./scripts/setup.sh --no-build redis etcd postgres faketime
if [ "$BROKEN" != 0 ]; then
  echo '0 passed, 1 failed'
  exit 1
fi
step lint npm run --silent lint
step types npm run --silent types
step build npm run --silent build
step unused npm run --silent unused
step tests npx vitest run --reporter=default --reporter=json --outputFile.json="$WORK/report.json"

echo
node scripts/test-count.mjs "$WORK/report.json" "$BROKEN"
