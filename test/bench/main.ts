// npm run bench -- <name> [--jobs n] [--rounds n] [--json]
//
// `carillon bench` from the sources, with the benches that only who works on Carillon needs. Figures of two runs, or of
// two machines, say little of each other; the ratio of one run does.
import { BENCHES, type Bench } from '../../src/bench/benches.js';
import { createProgram, run } from '../../src/cli/program.js';
import { fireTimes } from './cron.js';
import { definitions } from './definitions.js';
import { idle } from './idle.js';
import { pop } from './pop.js';
import { schedules } from './schedules.js';

const OF_DEVELOPERS: Record<string, Bench> = {
  pop: { jobs: 1_000_000, rounds: 9, says: 'what dispatch costs, by what is pending', run: pop },
  idle: { jobs: 1_000_000, rounds: 1, says: 'what an idle scheduler asks of Redis', run: idle },
  schedules: { jobs: 10_000, rounds: 1, says: 'schedules that fire together every 5 s', run: schedules },
  definitions: {
    jobs: 2_000_000,
    rounds: 1,
    says: 'daily schedules, a fifth due at one instant',
    run: definitions,
  },
  'fire-times': { jobs: 2_000_000, rounds: 7, says: 'cron arithmetic beside cron-parser', run: fireTimes },
};

const program = createProgram({ ...BENCHES, ...OF_DEVELOPERS });
process.exitCode = await run(['bench', ...process.argv.slice(2)], program);
