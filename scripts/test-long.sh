#!/bin/sh
# What does not fit into test.sh. Each part prints what it checks; the first that fails ends the run.
set -eu
cd "$(dirname "$0")/.."

WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

./scripts/setup.sh redis etcd postgres faketime

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

# The example for NestJS on NestJS 10, with the packed tarball; every change runs it on NestJS 11.
echo '== the NestJS example on NestJS 10'
NEST="$WORK/nestjs"
mkdir "$NEST"
cp examples/nestjs/app.ts "$NEST"
echo '{ "private": true, "type": "module" }' >"$NEST/package.json"
echo '{ "compilerOptions": { "experimentalDecorators": true, "emitDecoratorMetadata": true } }' >"$NEST/tsconfig.json"
npm pack --silent --pack-destination "$WORK" >/dev/null
(cd "$NEST" && npm install --silent --no-audit --no-fund "$WORK"/carillon-*.tgz 'bullmq@>=6.7 <7' \
  @nestjs/core@10 @nestjs/common@10 @nestjs/bullmq@12 reflect-metadata rxjs)
CARILLON_TEST_NESTJS="$NEST" npx vitest run --project contract nestjs </dev/null

# Fire times against a walk over the minutes, in every zone that this Node knows: about fifteen minutes. Every change runs
# a sample.
echo '== fire times in all zones'
CARILLON_ALL_ZONES=1 npx vitest run --project property fire-times-zones </dev/null

# The fault tests at full size: a herd of 100,000 killed in the middle, 200,000 overdue, a million pending, an hour of
# schedules of every second, etcd's majority gone for 30 s and for three minutes.
echo '== faults at full size'
CARILLON_LONG=1 npx vitest run --project cluster --project fault --project alone </dev/null
# What is compared by chance, with more of it.
CARILLON_LONG=1 npx vitest run --project integration scripts-plain-tick schedules-fates </dev/null

echo '== test-long: ok'
