import type { Command } from 'commander';
import type { GraphNodeInfo } from '../client/job-graph.js';
import { identityOf } from '../domain/ids.js';
import { withKnownQueue } from './connect.js';
import { notFound } from './jobs-change-one.js';
import { away, plain, printJson, printLine } from './output.js';
import { settingsOf } from './settings.js';

/** `carillon jobs graph`. */
export function addGraph(jobs: Command): void {
  jobs
    .command('graph <queue> <id>')
    .description('what a job waits for and what waits for it, as a tree; ended jobs are known for an hour')
    .action(graph);
}

async function graph(queue: string, id: string, _options: unknown, command: Command): Promise<void> {
  const settings = settingsOf(command);
  const nodes = await withKnownQueue(settings, queue, (q) => q.getGraph(id));
  const asked = identityOf(queue, id);
  if (nodes.get(asked)?.state === 'unknown') throw notFound(queue, id);
  if (settings.json) return printJson({ queue, id, nodes: [...nodes.values()] });
  for (const line of treeOf(nodes, asked)) printLine(line);
}

/** The graph as a forest, roots first; a job with several parents stands under the first one, and is named under the others. Pure. */
export function treeOf(nodes: ReadonlyMap<string, GraphNodeInfo>, asked: string): string[] {
  const lines: string[] = [];
  const shown = new Set<string>();
  const show = (identity: string, indent: string, branch: string, below: string): void => {
    const node = nodes.get(identity);
    const mark = identity === asked ? ' ◀' : '';
    if (node === undefined || shown.has(identity)) {
      lines.push(`${indent}${branch}${plain(identity)}${node === undefined ? '' : ' (above)'}${mark}`);
      return;
    }
    shown.add(identity);
    lines.push(`${indent}${branch}${plain(identity)} ${describe(node)}${mark}`);
    node.children.forEach((child, i) => {
      const last = i === node.children.length - 1 && node.more === 0;
      show(child, indent + below, last ? '└─ ' : '├─ ', last ? '   ' : '│  ');
    });
    if (node.more > 0) lines.push(`${indent}${below}└─ and ${node.more} more`);
  };
  const children = new Set([...nodes.values()].flatMap((node) => node.children));
  for (const identity of nodes.keys()) if (!children.has(identity)) show(identity, '', '', '');
  return lines;
}

function describe({ state, scheduledFor, note, after, repeats }: GraphNodeInfo): string {
  const waits = state === 'waiting' || state === 'paused';
  const open = waits ? after.filter(({ outcome }) => outcome === '') : [];
  const parts = [
    open.length > 0 ? `${state} for ${open.length} of ${after.length}` : state,
    ...(scheduledFor === undefined || state === 'waiting' ? [] : [`due ${away(scheduledFor)}`]),
    ...(note === undefined ? [] : [plain(note)]),
    ...(repeats === undefined ? [] : [repeats.startsWith('may') ? repeats : `repeats ${repeats}`]),
  ];
  return `[${parts.join(', ')}]`;
}
