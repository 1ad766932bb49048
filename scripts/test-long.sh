#!/bin/sh
# What does not fit into test.sh. Each part prints what it checks; the first that fails ends the run.
set -eu
cd "$(dirname "$0")/.."

WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

./scripts/setup.sh

# The packed tarball on every supported line of Node. npm's node-<platform>-<arch> packages bring the binaries.
for version in 20.0 22 24; do
  echo "== the package on Node $version"
  package="node-$(node -p 'process.platform + "-" + process.arch')"
  npm install --silent --no-save --no-audit --no-fund --prefix "$WORK/$version" "$package@$version"
  CARILLON_TEST_NODE="$WORK/$version/node_modules/$package/bin/node"
  export CARILLON_TEST_NODE
  "$CARILLON_TEST_NODE" --version
  npx vitest run --project package </dev/null
done
unset CARILLON_TEST_NODE

echo '== test-long: ok'
