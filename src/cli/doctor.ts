import type { Command } from 'commander';
import type { DoctorReport } from '../client/doctor.js';
import { formatDuration } from '../domain/durations.js';
import { durationArgument } from './arguments.js';
import { withCluster } from './cluster.js';
import { clusterLook } from './cluster-look.js';
import { withAdmin } from './connect.js';
import { addEtcdFlags } from './etcd-flags.js';
import { plain, printJson, printLine } from './output.js';
import { settingsOf } from './settings.js';

const HELP = `
Nothing is written, and Redis is never blocked: everything is read in pages, and what seems wrong counts only if a
second look says so too. With --etcd (or CARILLON_ETCD) it also asks etcd who leads. Exit code 0 without errors (there may be warnings), 1 with errors.

Examples:
  carillon doctor
  carillon doctor --etcd http://10.0.0.6:2379
  carillon --redis redis://10.0.0.5:6379 --prefix shop doctor --json`;

/** `carillon doctor`. */
export function addDoctor(program: Command): void {
  const command = program
    .command('doctor')
    .description('say what is wrong with a live namespace, its Redis and its queues')
    .option('--pause <duration>', 'between the two looks (default: 1s)')
    .option(
      '--stale-after <duration>',
      'a leader’s heartbeat older than this is nobody’s (default: 1.5 times its TTL)',
    )
    .addHelpText('after', HELP)
    .action(examine);
  addEtcdFlags(command);
}

async function examine(options: { pause?: string; staleAfter?: string }, command: Command): Promise<void> {
  const settings = settingsOf(command);
  const { resolveDoctorOptions } = await import('../client/doctor.js');
  const given = {
    pause: options.pause && durationArgument(options.pause, 'pause'),
    staleAfter:
      options.staleAfter === undefined ? undefined : durationArgument(options.staleAfter, 'stale-after'),
  };
  resolveDoctorOptions(given);
  const report = await withAdmin(settings, (admin) =>
    settings.etcd === undefined
      ? admin.doctor(given)
      : withCluster(settings, ({ read }) =>
          admin.doctor({ ...given, cluster: async () => clusterLook(await read()) }),
        ),
  );
  if (!report.healthy) process.exitCode = 1;
  if (settings.json) return printJson(report);
  for (const line of reportLines(report)) printLine(line);
}

/** The report for people. Pure. */
export function reportLines(report: DoctorReport): string[] {
  const lines: string[] = [];
  for (const { severity, check, subject, detail, todo } of report.findings) {
    lines.push(
      `${severity.padEnd(8)}${check.padEnd(12)}${plain(subject)}`,
      `        ${plain(detail)}`,
      `        → ${todo}`,
    );
  }
  for (const [check, count] of Object.entries(report.omitted)) lines.push(`and ${count} more of ${check}`);
  for (const note of report.notes) lines.push(`note    ${note}`);
  const { looked, server, leader, coordination } = report;
  const standalone =
    leader?.holder === undefined ? 'nobody leads' : `${leader.holder} leads (token ${leader.token})`;
  const led = coordination === 'etcd' ? 'led by etcd' : standalone;
  lines.push(
    `${report.namespace}: ${counted(report.errors, 'error')}, ${counted(report.warnings, 'warning')}; ${led}`,
    `looked at ${counted(looked.records, 'record')}, ${counted(looked.queues, 'queue')}, ` +
      `${counted(looked.runs, 'waiting run')}, ${counted(looked.quarantined, 'set-aside record')} ` +
      `in ${formatDuration(report.took)}; Redis ${server.version}, its clock ${server.clockOffset} ms from this one`,
  );
  return lines;
}

function counted(count: number, what: string): string {
  return `${count.toLocaleString('en-US')} ${what}${count === 1 ? '' : 's'}`;
}
