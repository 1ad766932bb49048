import { checkCall } from '../config/call-options.js';
import { checkObject, refuse } from '../config/check.js';
import { type DurabilityOptions, durabilityOf } from '../config/durability-options.js';
import { rejectUnknown } from '../config/unknown-options.js';
import { layersOf } from '../domain/graph.js';
import { checkQueueName, identityOf } from '../domain/ids.js';
import type { Durability } from '../redis/durability.js';
import type { JobScripts } from '../redis/job-scripts.js';
import type { ParentScripts } from '../redis/parent-scripts.js';
import { statusError } from '../redis/status.js';
import type { SubmitAnswer, SubmitItem, SubmitResult } from '../redis/submit-batch.js';
import { Submitter } from '../redis/submitter.js';
import type { UnansweredJobs } from '../redis/unanswered-jobs.js';
import type { WorkerRegistry } from '../redis/worker-registry.js';
import { type GraphNodeInfo, readGraph } from './job-graph.js';
import { jobIds } from './job-ids.js';
import type { JobOptions } from './job-options.js';
import { namedBy } from './named-refusal.js';
import { type JobLimits, prepareJob, refuseOfCall, withDefaults } from './prepare-job.js';
import { checkRequestId } from './request-ids.js';

/** One job of a graph; its `opts.after` names others of the graph, or jobs that are there already. */
export interface GraphJob<Data = unknown> {
  /** Defaults to the queue that the graph is added by. */
  queue?: string;
  name: string;
  data?: Data;
  opts?: JobOptions;
}

/** What became of a node. */
export interface AddedNode {
  queue: string;
  jobId: string;
  answer: SubmitAnswer;
  /** ms */
  scheduledFor: number;
}

/** What a graph is added with. */
export interface GraphParts {
  jobs: JobScripts;
  parents: ParentScripts;
  workers: WorkerRegistry;
  unanswered: UnansweredJobs;
  limits: JobLimits & { maxPending: number };
  /** The options of jobs of the own queue that do not say otherwise. */
  defaults: () => JobOptions;
}

const MOST_NODES = 10_000;

/** Adds jobs that wait for each other, over any queues of one namespace. */
export class Graphs {
  readonly #newId = jobIds();

  constructor(private readonly parts: GraphParts) {}

  /** All jobs that hang together with one of the own queue. */
  read(jobId: string): Promise<Map<string, GraphNodeInfo>> {
    const { parents, workers, limits } = this.parts;
    return readGraph(parents, workers, limits.queue, jobId);
  }

  /**
   * Checks the graph whole, then adds it, parents first: a call that fails half-way has stored no job without its parents,
   * and repeated with the same ids it adds only what is missing.
   * @throws CarillonError CYCLE, UNKNOWN_PARENT, ID_IN_USE and all that `queue.add` refuses; nothing was sent then.
   */
  async add(
    nodes: readonly GraphJob[],
    options: { requestId?: string; durability?: DurabilityOptions },
  ): Promise<AddedNode[]> {
    checkCall(options, ['requestId', 'durability']);
    const { requestId, durability: asked } = options;
    const durability = durabilityOf(asked);
    if (requestId !== undefined) checkRequestId(requestId);
    if (!Array.isArray(nodes))
      refuse('nodes', nodes, 'must be a list', 'Give [{ queue, name, data, opts }, …].');
    if (nodes.length > MOST_NODES) {
      refuse(
        'nodes',
        `${nodes.length} nodes`,
        `has more than ${MOST_NODES}`,
        'Add it in parts, parents first.',
      );
    }
    const prepared = nodes.map((node, index) => this.#prepare(node, index, requestId));
    const shapes = prepared.map(({ queue, item }) => ({
      identity: identityOf(queue, item.jobId),
      parents: item.after?.e.map(([parent]) => parent) ?? [],
    }));
    const layers = layersOf(shapes);
    const own = new Set(shapes.map(({ identity }) => identity));
    const all = new Set(shapes.flatMap(({ parents }) => parents));
    const items = prepared.map(({ item }) => item);
    const results: SubmitResult[] = [];
    await this.parts.unanswered.hold(items, async () => {
      await this.#requireKnown([...all].filter((parent) => !own.has(parent)));
      // A root may run and be gone before its children are stored: its outcome is kept from the beginning.
      await this.parts.parents.announce(
        [...all].filter((parent) => own.has(parent)),
        durability,
      );
      for (const layer of layers) await this.#addLayer(layer, prepared, results, { requestId, durability });
    });
    return prepared.map(({ queue }, index) => {
      const { jobId, answer, scheduledFor } = results[index] as SubmitResult;
      return { queue, jobId, answer, scheduledFor };
    });
  }

  #prepare(
    node: GraphJob,
    index: number,
    requestId: string | undefined,
  ): { queue: string; item: SubmitItem } {
    const field = `nodes[${index}]`;
    rejectUnknown(checkObject(field, node), ['queue', 'name', 'data', 'opts'], `${field}.`);
    if (node.opts !== undefined) checkObject(`${field}.opts`, node.opts);
    const { limits, defaults } = this.parts;
    const queue = node.queue === undefined ? limits.queue : checkQueueName(node.queue, `${field}.queue`);
    const opts = withDefaults(queue === limits.queue ? defaults() : {}, node.opts);
    return namedBy(field, () => {
      refuseOfCall(opts, 'addGraph(nodes');
      const own = { ...limits, queue };
      return { queue, item: prepareJob(node.name, node.data, opts, own, this.#newId, requestId, index) };
    });
  }

  async #requireKnown(parents: readonly string[]): Promise<void> {
    if (parents.length === 0) return;
    for (const found of await this.parts.parents.read(parents, 0)) {
      if (found.state === 'unknown') throw statusError('UNKNOWN_PARENT', found.identity);
    }
  }

  async #addLayer(
    layer: readonly number[],
    prepared: readonly { queue: string; item: SubmitItem }[],
    results: SubmitResult[],
    { requestId, durability }: { requestId: string | undefined; durability: Durability | undefined },
  ): Promise<void> {
    const byQueue = new Map<string, number[]>();
    for (const index of layer) {
      const { queue } = prepared[index] as (typeof prepared)[0];
      const list = byQueue.get(queue);
      if (list === undefined) byQueue.set(queue, [index]);
      else list.push(index);
    }
    await Promise.all(
      [...byQueue].map(async ([queue, indexes]) => {
        const { jobs, limits, unanswered } = this.parts;
        const submitter = new Submitter(jobs, queue, {
          maxPending: limits.maxPending,
          wall: Date.now,
          answered: () => unanswered.answered(),
        });
        const items = indexes.map((index) => (prepared[index] as (typeof prepared)[0]).item);
        // A layer of a queue is a request: its items keep their places in each repeat.
        const request = requestId === undefined ? undefined : `${requestId}:${queue}:${layer[0]}`;
        const answered = await submitter.submit(items, request, durability);
        for (const [i, result] of answered.entries()) results[indexes[i] as number] = result;
      }),
    );
  }
}
