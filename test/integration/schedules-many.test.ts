import { describe, expect, test } from 'vitest';
import type { ScheduleFilter } from '../../src/client/schedule-filter.js';
import type { ScheduleDefinition } from '../../src/domain/schedule.js';
import { ScheduleWorld } from '../support/schedule-world.js';
import { changesOf } from '../support/spine-state.js';

const at = (time: string) => `2026-01-15T${time}Z`;
const daily: ScheduleDefinition = { cron: '0 3 * * *', missed: 'latest' };

/** Five schedules: two of billing, one of them paused with a note; one of London, one with a name of its own. */
async function town(task: { name: string }) {
  const world = await ScheduleWorld.at(at('12:00:30'), task);
  await world.schedules.upsert('invoices', { ...daily, tags: ['billing', 'nightly'] });
  await world.schedules.upsert('dunning', { ...daily, tags: ['billing'] });
  await world.schedules.get('dunning').pause({ note: 'The law changes' });
  await world.schedules.upsert('report', { ...daily, tz: 'Europe/London', tags: ['nightly'] });
  await world.schedules.upsert('ping', { every: '15m', missed: 'skip' }, { name: 'health-check' });
  await world.schedules.upsert('over', { ...daily, endDate: at('00:00:00') });
  return world;
}

async function ids(world: ScheduleWorld, filter: ScheduleFilter): Promise<string[]> {
  const found: string[] = [];
  for await (const { id } of world.schedules.list(filter)) found.push(id);
  return found.sort();
}

describe('list', () => {
  test.each<[string, ScheduleFilter, string[]]>([
    ['everything', {}, ['dunning', 'invoices', 'over', 'ping', 'report']],
    ['a tag', { tag: 'billing' }, ['dunning', 'invoices']],
    ['a part of a tag is no tag', { tag: 'bill' }, []],
    ['a state', { state: 'paused' }, ['dunning']],
    ['what has ended', { state: 'ended' }, ['over']],
    ['a part of an id, in any case', { text: 'VOIC' }, ['invoices']],
    ['the name of its runs', { text: 'health' }, ['ping']],
    ['a zone', { text: 'london' }, ['report']],
    ['an expression', { text: '0 3' }, ['dunning', 'invoices', 'over', 'report']],
    ['a note', { text: 'the law' }, ['dunning']],
    ['all conditions at once', { tag: 'nightly', state: 'scheduled', text: 'o' }, ['invoices', 'report']],
    ['some of these ids', { ids: ['ping', 'report', 'gone'], text: 'r' }, ['report']],
    ['no ids', { ids: [] }, []],
    ['everything by its name', { all: true }, ['dunning', 'invoices', 'over', 'ping', 'report']],
    ['none', { tag: 'billing', text: 'london' }, []],
  ])('by %s', async (what, filter, expected) => {
    const world = await town({ name: `list ${what}` });
    expect(await ids(world, filter)).toEqual(expected);
  });

  test.each([
    ['an empty tag', { tag: '' }, 'filter.tag'],
    ['a text that is none', { text: 5 }, 'filter.text'],
    ['ids that are none', { ids: 'ping' }, 'filter.ids'],
    ['an unknown state', { state: 'active' }, 'filter.state'],
    ['a state by a name of every object', { state: 'constructor' }, 'filter.state'],
    ['an unknown condition', { tags: 'billing' }, 'filter.tags'],
    ['no object', 'billing', 'filter'],
  ])('refuses %s', async (what, filter, field) => {
    const world = await ScheduleWorld.at(at('12:00:30'), { name: `filter ${what}` });
    await expect(ids(world, filter as ScheduleFilter)).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      field,
    });
  });
});

describe('change', () => {
  test('dry run: tells which are meant, and changes nothing', async ({ task }) => {
    const world = await town(task);
    for (const verb of ['pause', 'resume', 'trigger', 'delete'] as const) {
      const { result, changes } = await changesOf(world.spine, () =>
        world.schedules.change(verb, { tag: 'billing' }, { dryRun: true }),
      );
      expect(result.toSorted((a, b) => a.id.localeCompare(b.id))).toEqual([
        { id: 'dunning', done: false, problem: undefined },
        { id: 'invoices', done: false, problem: undefined },
      ]);
      expect(changes).toEqual({});
    }
  });

  test('pause with a note, and resume: one that refuses stops none of the others', async ({ task }) => {
    const world = await town(task);
    const paused = await world.schedules.change('pause', { tag: 'nightly' }, { note: 'move of the office' });
    expect(paused.map(({ id, done }) => `${id} ${done}`).sort()).toEqual(['invoices true', 'report true']);
    for (const id of ['invoices', 'report']) {
      const info = await world.schedules.get(id).describe();
      expect(info).toMatchObject({ state: 'paused', note: 'move of the office' });
    }
    await world.schedules.get('dunning').resume();
    const resumed = await world.schedules.change('resume', { text: 'n' });
    expect(resumed.toSorted((a, b) => a.id.localeCompare(b.id))).toEqual([
      { id: 'dunning', done: false, problem: 'CONFLICT: it is not paused' },
      { id: 'invoices', done: true, problem: undefined },
      { id: 'ping', done: false, problem: 'CONFLICT: it is not paused' },
      { id: 'report', done: true, problem: undefined },
    ]);
    expect(await ids(world, { state: 'paused' })).toEqual([]);
  });

  test('trigger, sent again by its request id, runs each once', async ({ task }) => {
    const world = await town(task);
    const requestId = 'r'.repeat(1000);
    for (let i = 0; i < 2; i++) {
      const done = await world.schedules.change('trigger', { tag: 'nightly' }, { requestId });
      expect(done.map(({ id, problem }) => `${id} ${problem}`).sort()).toEqual([
        'invoices undefined',
        'report undefined',
      ]);
    }
    expect((await world.runIds()).map((runId) => runId.split('@')[0]).sort()).toEqual(['invoices', 'report']);
  });

  test('delete, with the reason in the history', async ({ task }) => {
    const world = await town(task);
    await world.schedules.change('delete', { state: 'scheduled', tag: 'billing' }, { note: 'sold' });
    expect(await ids(world, {})).toEqual(['dunning', 'over', 'ping', 'report']);
    expect(await world.history()).toEqual(['deleted 2026-01-16T03:00:00Z sold']);
  });

  test('trigger in turn, then delete with the runs that no worker has fetched', async ({ task }) => {
    const world = await town(task);
    await world.schedules.change('trigger', { tag: 'nightly' });
    await world.schedules.change('trigger', { tag: 'nightly' }, { overlap: 'policy' });
    const open = await world.runIds();
    expect(open).toHaveLength(2);
    await world.schedules.change('delete', { ids: ['report'] }, { cancelRuns: true });
    expect(await world.runIds()).toEqual(open.filter((runId) => runId.startsWith('invoices')));
    await world.schedules.change('delete', { ids: ['invoices'] });
    expect(await world.runIds()).toHaveLength(1);
  });

  test.each([
    ['an empty filter, which would mean all', 'delete', {}, {}, 'filter'],
    ['conditions that are all left out', 'delete', { tag: undefined }, {}, 'filter'],
    ['all of them and a condition', 'delete', { all: true, tag: 'billing' }, {}, 'filter.all'],
    ['all that is neither true nor false', 'delete', { all: 'yes' }, {}, 'filter.all'],
    ['a misspelt condition', 'delete', { tags: 'billing' }, {}, 'filter.tags'],
    ['an unknown verb', 'stop', { tag: 'billing' }, {}, 'verb'],
    ['a verb by a name of every object', 'toString', { tag: 'billing' }, {}, 'verb'],
    ['a request id that is none', 'pause', { tag: 'billing' }, { requestId: '' }, 'requestId'],
  ])('refuses %s, and changes nothing', async (what, verb, filter, options, field) => {
    const world = await town({ name: `refuses ${what}` });
    const { changes } = await changesOf(world.spine, () =>
      expect(
        world.schedules.change(verb as 'delete', filter as ScheduleFilter, options),
      ).rejects.toMatchObject({
        code: 'INVALID_OPTION',
        field,
      }),
    );
    expect(changes).toEqual({});
  });
});

test('all schedules of the queue are meant by { all: true }', async ({ task }) => {
  const world = await town(task);
  const changed = await world.schedules.change('delete', { all: true });
  expect(changed.map(({ id }) => id).sort()).toEqual(['dunning', 'invoices', 'over', 'ping', 'report']);
  expect(await ids(world, {})).toEqual([]);
});

describe('describe', () => {
  test('says in words what the policies do, what comes and what was; and why it stands still', async ({
    task,
  }) => {
    const world = await town(task);
    await world.startScheduler();
    await world.passTo('2026-01-16T03:00:00Z');
    const info = await world.schedules.get('report').describe();
    expect(info).toMatchObject({
      state: 'scheduled',
      count: 1,
      words: expect.arrayContaining([
        'It fires at 0 3 * * *, Europe/London time.',
        'Of ticks that were missed, the newest one runs.',
      ]),
      lateness: 'A tick that nobody serves for 30s is caught up, at most 1d late.',
      recent: [{ what: 'dispatched', lateBy: 0, outcome: 'waiting' }],
    });
    expect(info?.upcoming).toHaveLength(10);
    expect(info?.upcoming[0]).toMatchObject({ at: Date.parse('2026-01-17T03:00:00Z') });
    expect(await world.schedules.get('dunning').describe()).toMatchObject({
      state: 'paused',
      note: 'The law changes',
    });
    expect((await world.schedules.get('over').describe())?.upcoming).toEqual([]);
    expect(await world.schedules.get('none').describe()).toBeUndefined();
  });
});
