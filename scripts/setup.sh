#!/bin/sh
# Installs what Carillon needs to run and be tested, says what it does, and does nothing that is done already.
#
#   scripts/setup.sh                  everything: redis-server, etcd, npm packages, build
#   scripts/setup.sh redis            only what running needs: redis-server, npm packages, build
#   scripts/setup.sh etcd             only what several schedulers need: etcd, npm packages, build
#   scripts/setup.sh postgres         only what the tests of the outbox need: PostgreSQL, npm packages, build
#   scripts/setup.sh faketime         only libfaketime, for the tests of a wall clock that leaps, npm packages, build
#   scripts/setup.sh --no-build ...   the same without the build
#
# Works as root without sudo, and as a user with it.
set -eu
cd "$(dirname "$0")/.."

BUILD=yes
PARTS=''
for argument in "$@"; do
  case $argument in
    --no-build) BUILD=no ;;
    redis | etcd | postgres | faketime) PARTS="$PARTS $argument" ;;
    *)
      echo "setup: unknown argument '$argument'. Use: scripts/setup.sh [--no-build] [redis] [etcd] [postgres] [faketime]" >&2
      exit 2
      ;;
  esac
done
PARTS=${PARTS:-redis etcd}

say() { echo "setup: $*"; }

fail() {
  echo "setup: $1" >&2
  cat >&2 <<'END'
setup: With Docker instead, nothing is installed on this machine:
         docker compose up                                           Redis, a scheduler and a worker
         docker build --target test -t carillon-test . && docker run --rm carillon-test     all tests
END
  exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif has sudo; then
    say "sudo $*"
    sudo "$@"
  else
    fail "installing needs root and there is no sudo. Run as root: $*"
  fi
}

# install_package <what for> <apt name> <dnf names> <apk name> <brew name>: the first package manager found does it.
# Several dnf names are tried in turn: distributions replaced one by the other.
install_package() {
  if has apt-get; then
    say "$1 is missing: installing $2 with apt-get"
    apt-cache show "$2" >/dev/null 2>&1 || apt_update
    # Lists may name a version that the mirrors have replaced.
    apt_install "$2" || { apt_update && apt_install "$2"; } || fail "apt-get could not install $2"
  elif has dnf; then
    for name in $3; do
      say "$1 is missing: installing $name with dnf"
      if as_root dnf install -y -q "$name"; then return; fi
    done
    fail "dnf could install none of: $3"
  elif has apk; then
    say "$1 is missing: installing $4 with apk"
    as_root apk add --quiet "$4" || fail "apk could not install $4"
  elif has brew; then
    say "$1 is missing: installing $5 with brew"
    brew install --quiet "$5" || fail "brew could not install $5"
  else
    fail "$1 is missing, and none of apt-get, dnf, apk and brew is here to install it"
  fi
}

apt_update() {
  say 'refreshing the package lists'
  as_root apt-get update -q || fail 'apt-get update failed'
}

apt_install() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$1"
}

check_node() {
  if ! has node || ! has npm; then
    fail 'Node.js is missing. Install version 20 or later with its npm: https://nodejs.org'
  fi
  node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 20 ? 0 : 1)' ||
    fail "Node.js $(node --version) is too old. Install version 20 or later: https://nodejs.org"
}

setup_redis() {
  binary=${CARILLON_REDIS_SERVER:-redis-server}
  if ! has "$binary"; then
    [ "$binary" = redis-server ] || fail "CARILLON_REDIS_SERVER names '$binary', which cannot be run"
    install_package redis-server redis-server 'redis valkey-compat-redis' redis redis
    say 'a package may have started a Redis of its own on port 6379; Carillon neither uses nor needs it'
  fi
  # "Redis server v=7.0.15 ...", "Valkey server v=8.1.1 ..."
  version=$("$binary" --version | sed -n 's/.* v=\([0-9][0-9.]*\).*/\1/p')
  case $version in
    [7-9].* | [1-9][0-9]*.*) say "$binary $version" ;;
    *) fail "$binary has version '$version'; Carillon needs 7.0 or later. Name a newer one in CARILLON_REDIS_SERVER" ;;
  esac
}

setup_etcd() {
  binary=${CARILLON_ETCD_SERVER:-etcd}
  if ! has "$binary"; then
    [ "$binary" = etcd ] || fail "CARILLON_ETCD_SERVER names '$binary', which cannot be run"
    install_package etcd etcd-server etcd etcd etcd
    say 'a package may have started an etcd of its own on port 2379; Carillon neither uses nor needs it'
  fi
  # "etcd Version: 3.4.23"
  version=$("$binary" --version | sed -n 's/^etcd Version: \([0-9][0-9.]*\).*/\1/p')
  case $version in
    3.[4-9].* | 3.[1-9][0-9]*.* | [4-9].*) say "$binary $version" ;;
    *) fail "$binary has version '$version'; Carillon needs 3.4 or later. Name a newer one in CARILLON_ETCD_SERVER" ;;
  esac
}

# Only tests need it. They start servers of their own with its binaries, which Debian keeps out of PATH.
setup_postgres() {
  if ! has initdb && ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 && [ -z "${CARILLON_TEST_POSTGRES_BIN:-}" ]; then
    install_package postgres postgresql postgresql-server postgresql postgresql
    say 'a package may have started a PostgreSQL of its own on port 5432; Carillon neither uses nor needs it'
  fi
  say "postgres $(ls /usr/lib/postgresql 2>/dev/null | sort -n | tail -n 1)"
}

# Nothing that runs needs it: where no package manager has it, its test is skipped.
setup_faketime() {
  has faketime || (install_package faketime faketime libfaketime libfaketime libfaketime) || say 'going on without faketime'
}

setup_npm() {
  if node scripts/packages-current.mjs; then
    say 'npm packages are as package-lock.json says'
  else
    say 'installing npm packages (npm ci)'
    npm ci --no-audit --no-fund --loglevel=error || fail 'npm ci failed'
  fi
}

check_node
for part in $PARTS; do "setup_$part"; done
setup_npm
if [ "$BUILD" = yes ]; then
  say 'building dist/'
  npm run --silent build
fi
say 'done'
