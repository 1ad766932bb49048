import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** A machine of its own: a copy of the scripts, and a PATH with exactly the commands given. */
class Machine {
  readonly dir = mkdtempSync(join(tmpdir(), 'carillon-setup-'));
  readonly bin = join(this.dir, 'bin');
  readonly #calls = join(this.dir, 'calls');

  constructor(user: 'root' | 'somebody') {
    onTestFinished(() => rmSync(this.dir, { recursive: true }));
    mkdirSync(this.bin);
    cpSync(join(ROOT, 'scripts'), join(this.dir, 'scripts'), { recursive: true });
    for (const tool of ['sh', 'sed', 'dirname', 'cat', 'env', 'chmod'])
      symlinkSync(which(tool), join(this.bin, tool));
    symlinkSync(process.execPath, join(this.bin, 'node'));
    this.command('id', `echo ${user === 'root' ? 0 : 1000}`);
    this.command('npm', `mkdir -p node_modules; cp package-lock.json node_modules/.package-lock.json`);
    for (const tool of ['mkdir', 'cp']) symlinkSync(which(tool), join(this.bin, tool));
    this.lock({ '': {}, 'node_modules/a': { version: '1.0.0' } });
    this.write('calls', '');
  }

  /** Adds a command that notes its call and runs `body`. */
  command(name: string, body = ''): this {
    this.write(`bin/${name}`, `#!/bin/sh\necho "${name} $*" >> ${this.#calls}\n${body}\n`);
    chmodSync(join(this.bin, name), 0o755);
    return this;
  }

  /** A package manager that brings a redis-server of that version for one of these names. */
  manager(name: string, accepts: string, version = '7.2.4'): this {
    return this.bringing(name, accepts, 'redis-server', `Redis server v=${version} sha=0`);
  }

  /** A package manager that brings a command for one of these names, which says `version`. */
  bringing(name: string, accepts: string, command: string, version: string): this {
    const path = join(this.bin, command);
    return this.command(
      name,
      `case "$*" in *${accepts}*) ;; *) exit 1 ;; esac
       printf '#!/bin/sh\\necho "${version}"\\n' > ${path}; chmod 755 ${path}`,
    );
  }

  lock(packages: object, file = 'package-lock.json'): void {
    this.write(file, JSON.stringify({ packages }));
  }

  run(args: string[] = ['--no-build', 'redis'], env: Record<string, string> = {}) {
    const { status, stdout, stderr } = spawnSync('sh', [join(this.dir, 'scripts/setup.sh'), ...args], {
      encoding: 'utf8',
      env: { PATH: this.bin, ...env },
    });
    const calls = readFileSync(this.#calls, 'utf8')
      .split('\n')
      .filter((call) => !/^(id|)( |$)/.test(call));
    this.write('calls', '');
    return { status, output: stdout + stderr, calls };
  }

  write(file: string, text: string): void {
    mkdirSync(dirname(join(this.dir, file)), { recursive: true });
    writeFileSync(join(this.dir, file), text);
  }
}

function which(tool: string): string {
  const { stdout } = spawnSync('sh', ['-c', `command -v ${tool}`], {
    encoding: 'utf8',
    env: { PATH: ['/bin', '/usr/bin', process.env.PATH].join(delimiter) },
  });
  return stdout.trim();
}

const NPM_CI = 'npm ci --no-audit --no-fund --loglevel=error';

test.each([
  [
    'apt-get',
    'redis-server',
    'env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends redis-server',
  ],
  ['dnf', 'redis', 'dnf install -y -q redis'],
  ['apk', 'redis', 'apk add --quiet redis'],
])('with %s, root needs no sudo and a user uses it', (manager, name, install) => {
  const root = new Machine('root').manager(manager, name).command('apt-cache');
  const asRoot = root.run();
  expect(asRoot.output).toContain(`redis-server is missing: installing ${name} with ${manager}`);
  expect(asRoot.calls).toContain(install.replace(/^env \S+ /, ''));
  expect(asRoot.status).toBe(0);

  const user = new Machine('somebody').manager(manager, name).command('apt-cache').command('sudo', '"$@"');
  const asUser = user.run();
  expect(asUser.calls).toContain(`sudo ${install}`);
  expect(asUser.output).toContain(`setup: sudo ${install}`);
  expect(asUser.status).toBe(0);
});

test('with brew, no root is asked for', () => {
  const { status, calls } = new Machine('somebody').manager('brew', 'redis').run();
  expect(calls).toContain('brew install --quiet redis');
  expect(status).toBe(0);
});

test('dnf without redis takes the Valkey package that stands in for it', () => {
  const { status, output } = new Machine('root').manager('dnf', 'valkey-compat-redis', '8.1.1').run();
  expect(output).toContain('setup: redis-server 8.1.1');
  expect(status).toBe(0);
});

test('apt lists are refreshed when they do not know the package', () => {
  const { calls } = new Machine('root').manager('apt-get', '').command('apt-cache', 'exit 100').run();
  expect(calls.slice(0, 3)).toEqual([
    'apt-cache show redis-server',
    'apt-get update -q',
    'apt-get install -y -q --no-install-recommends redis-server',
  ]);
});

test.each([
  ['no package manager', 'none', 'none of apt-get, dnf, apk and brew is here'],
  ['neither root nor sudo', 'apt', 'installing needs root and there is no sudo'],
  ['an old redis-server', 'old', "has version '6.0.16'; Carillon needs 7.0 or later"],
])('%s: one clear line and the way by Docker', (_, kind, line) => {
  const machine = new Machine('somebody');
  if (kind === 'apt') machine.manager('apt-get', '').command('apt-cache');
  if (kind === 'old') machine.command('redis-server', 'echo "Redis server v=6.0.16 sha=0"');
  const { status, output } = machine.run();
  expect(output).toContain(line);
  expect(output).toContain('docker compose up');
  expect(status).toBe(1);
});

test('a binary named in the environment is used, and must exist', () => {
  const machine = new Machine('root').command('valkey-server', 'echo "Valkey server v=8.0.2 sha=0"');
  expect(machine.run(['--no-build', 'redis'], { CARILLON_REDIS_SERVER: 'valkey-server' }).output).toContain(
    'setup: valkey-server 8.0.2',
  );
  const missing = machine.run(['--no-build', 'redis'], { CARILLON_REDIS_SERVER: '/nowhere/redis' });
  expect(missing.output).toContain("CARILLON_REDIS_SERVER names '/nowhere/redis', which cannot be run");
});

test('etcd is installed where it is missing, by the name of its server alone', () => {
  const machine = new Machine('root')
    .bringing('apt-get', 'etcd-server', 'etcd', 'etcd Version: 3.4.23')
    .command('apt-cache');
  const { status, output, calls } = machine.run(['--no-build', 'etcd']);
  expect(calls).toContain('apt-get install -y -q --no-install-recommends etcd-server');
  expect(output).toContain('setup: etcd 3.4.23');
  expect(status).toBe(0);
  expect(machine.run(['--no-build', 'etcd']).calls.join()).not.toContain('apt-get');
});

test('without an argument it is everything: Redis and etcd', () => {
  const machine = new Machine('root')
    .command('redis-server', 'echo "Redis server v=7.0.0 sha=0"')
    .command('etcd', 'echo "etcd Version: 3.5.9"');
  expect(machine.run(['--no-build']).output).toMatch(/redis-server 7\.0\.0[\s\S]*etcd 3\.5\.9/);
  const old = new Machine('root').command('etcd', 'echo "etcd Version: 3.3.25"').run(['--no-build', 'etcd']);
  expect(old.output).toContain("has version '3.3.25'; Carillon needs 3.4 or later");
  expect(old.status).toBe(1);
});

test('faketime is installed where a package manager has it, and done without elsewhere', () => {
  const machine = new Machine('root')
    .bringing('apt-get', 'faketime', 'faketime', '0.9.10')
    .command('apt-cache');
  const first = machine.run(['--no-build', 'faketime']);
  expect(first.calls).toContain('apt-get install -y -q --no-install-recommends faketime');
  expect(first.status).toBe(0);
  expect(machine.run(['--no-build', 'faketime']).calls.join()).not.toContain('apt-get');
  const without = new Machine('root').run(['--no-build', 'faketime']);
  expect(without.output).toContain('going on without faketime');
  expect(without.status).toBe(0);
});

test('npm ci runs when node_modules is not what the lock file says, and only then', () => {
  const machine = new Machine('root').command('redis-server', 'echo "Redis server v=7.0.0 sha=0"');
  expect(machine.run().calls).toContain(NPM_CI);
  expect(machine.run().calls).not.toContain(NPM_CI);

  const stale: Record<string, object> = {
    'another version': { '': {}, 'node_modules/a': { version: '1.0.1' } },
    'one more': { '': {}, 'node_modules/a': { version: '1.0.0' }, 'node_modules/b': { version: '1.0.0' } },
    'one less': { '': {} },
  };
  for (const [what, lock] of Object.entries(stale)) {
    machine.lock(lock);
    expect([what, machine.run().calls.includes(NPM_CI)]).toEqual([what, true]);
  }

  // Another platform's optional package stays away.
  machine.lock({ '': {}, 'node_modules/c': { version: '1.0.0', optional: true } });
  machine.lock({}, 'node_modules/.package-lock.json');
  expect(machine.run().calls).not.toContain(NPM_CI);
});

test('it builds unless told not to, and refuses what it does not know', () => {
  const machine = new Machine('root').command('redis-server', 'echo "Redis server v=7.0.0 sha=0"');
  expect(machine.run(['redis']).calls).toContain('npm run --silent build');
  expect(machine.run(['redis', '--no-build']).calls).not.toContain('npm run --silent build');
  const unknown = machine.run(['kafka']);
  expect(unknown).toMatchObject({ status: 2, output: expect.stringContaining("unknown argument 'kafka'") });
});
