import { type Command, Option } from 'commander';
import type { ScheduleInfo } from '../client/schedule-info.js';
import type { StandingCommand } from '../domain/crontab-ids.js';
import { DIALECTS, type Dialect } from '../domain/dialect.js';
import { importCrontab } from '../domain/import-crontab.js';
import { importExpressions } from '../domain/import-expressions.js';
import type { MissedPolicy } from '../domain/schedule.js';
import { importBullmq } from './import-bullmq.js';
import { type FileFlags, importFiles } from './import-files.js';
import { sortImported } from './import-sources.js';
import { remark } from './output.js';

const EXAMPLES = `
Each shows what it would do and asks; --dry-run only shows, --yes does not ask.

Examples:
  carillon import crontab /var/spool/cron/alice --tz Europe/London --dry-run
  carillon import crontab /etc/cron.d/reports --user-column --id-prefix web1-
  carillon import k8s cronjobs.yaml --queue nightly
  carillon import expressions app.properties --dialect spring --queue app
  carillon import bullmq emails`;

/** What runs elsewhere becomes ours: `carillon import …`. */
export function addImport(program: Command): void {
  const from = program
    .command('import')
    .description('take over what another scheduler runs')
    .addHelpText('after', EXAMPLES);

  ofFiles(from.command('crontab <file...>'))
    .description('crontab files, each line a schedule whose runs carry the command; - is standard input')
    .option('--queue <name>', 'where the runs go', 'crontab')
    .option('--tz <zone>', 'the zone of lines that stand under no CRON_TZ', 'UTC')
    .option('--user-column', 'the files have a user column, as those of /etc/cron.d have')
    .addOption(missedOption().default('skip', 'skip, as crond does'))
    .option('--id-prefix <text>', 'put before each id, to keep the tables of several machines apart')
    .action(crontab);

  ofFiles(from.command('k8s <file...>'))
    .description('Kubernetes CronJobs in YAML or JSON; objects of other kinds are passed over')
    .option('--queue <name>', 'where the runs go', 'k8s')
    .option('--tz <zone>', 'the zone of CronJobs without timeZone', 'UTC')
    .option('--namespace-ids', 'ids are namespace.name: one name may stand in several namespaces')
    .action(k8s);

  ofFiles(from.command('expressions <file...>'))
    .description('lines like name = expression, in the notation of another scheduler')
    .addOption(new Option('--dialect <name>', 'whose notation').choices(DIALECTS).makeOptionMandatory())
    .requiredOption('--queue <name>', 'where the runs go')
    .option('--tz <zone>', 'the zone of expressions that name none', 'UTC')
    .addOption(missedOption().default(undefined, 'what the dialect’s scheduler does'))
    .action(expressions);

  offered(from.command('bullmq <queue>'))
    .description('the Job Schedulers and delayed jobs that BullMQ holds of a queue')
    .option('--schedulers', 'Job Schedulers only')
    .option('--delayed', 'delayed jobs only')
    .option('--tz <zone>', 'the zone of patterns without one', 'UTC')
    .option('--id-prefix <text>', 'put before the ids that BullMQ made, which are integers', 'bull-')
    .action(importBullmq);
}

function ofFiles(command: Command): Command {
  return offered(command)
    .option('--prune', 'delete what an earlier import of the label made and the source holds no more')
    .option('--label <text>', 'names the source; --prune needs it (default: the file’s name; none for -)');
}

/** Adds the flags of {@link OfferFlags}. */
export function offered(command: Command): Command {
  return command
    .option('--dry-run', 'only show what would be done')
    .option('-y, --yes', 'do it without asking');
}

function missedOption(): Option {
  return new Option('--missed <policy>', 'what becomes of ticks that nobody served').choices([
    'skip',
    'latest',
    'all',
  ]);
}

async function crontab(
  files: string[],
  flags: FileFlags & { userColumn?: boolean; missed: MissedPolicy },
  command: Command,
): Promise<void> {
  const { tz, missed, idPrefix = '', userColumn = false, queue } = flags;
  await importFiles(files, flags, command, {
    apart: 'give --id-prefix or another --queue',
    read: ({ name, text }, made) => {
      const standing = made.flatMap(commandOf);
      return sortImported(
        queue,
        name,
        importCrontab(text, { tz, missed, idPrefix, userColumn, standing }),
        '',
      );
    },
  });
}

async function k8s(
  files: string[],
  flags: FileFlags & { namespaceIds?: boolean },
  command: Command,
): Promise<void> {
  const { namespaceGuard, readManifests } = await import('./import-k8s.js');
  let others = 0;
  let found = 0;
  const { tz, namespaceIds = false, queue } = flags;
  const options = { tz, namespaceIds, now: Date.now() };
  await importFiles(files, flags, command, {
    adjust: namespaceGuard,
    apart: 'give --namespace-ids or another --queue',
    read: ({ name, text }) => {
      const manifests = readManifests(text, options);
      others += manifests.others;
      const sorted = sortImported(queue, name, manifests.imported, 'suspend: true in Kubernetes');
      found += sorted.wanted.length;
      return sorted;
    },
  });
  if (others > 0) remark(`${others} objects of other kinds were passed over`);
  if (found > 1) {
    remark(
      'history limits count the runs of the whole queue, not of one CronJob: give --queue where that matters',
    );
  }
}

async function expressions(
  files: string[],
  flags: FileFlags & { dialect: Dialect; missed?: MissedPolicy },
  command: Command,
): Promise<void> {
  const { dialect, tz, missed, queue } = flags;
  const options = { dialect, tz, ...(missed === undefined ? {} : { missed }) };
  await importFiles(files, flags, command, {
    read: ({ name, text }) => sortImported(queue, name, importExpressions(text, options), ''),
  });
}

/** A schedule that an import made of a crontab's line, as it stood there. */
function commandOf({ id, definition, template }: ScheduleInfo): StandingCommand[] {
  const { command, user, stdin } = (template.data ?? {}) as Partial<StandingCommand>;
  const [cron] = definition.cron ?? [];
  if (cron === undefined || command === undefined) return [];
  return [{ id, cron, tz: definition.tz ?? 'UTC', command, user, stdin }];
}
