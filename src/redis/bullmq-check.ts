import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { CarillonError } from '../domain/errors.js';
import { bullmqIncludeFile } from './script-source.js';

/** The functions of BullMQ's Lua that ours call, with the parameters that we pass and the text that we tested. */
const USED: Record<string, { parameters: string; sha: string }> = {
  storeJob: {
    parameters: 'eventsKey,jobIdKey,jobId,name,data,opts,timestamp,parentKey,parentData,repeatJobKey',
    sha: '780d38ee150a',
  },
  addJobWithPriority: {
    parameters: 'markerKey,prioritizedKey,priority,jobId,priorityCounterKey,isPausedOrMaxed',
    sha: '5ea63c885aea',
  },
  addBaseMarkerIfNeeded: { parameters: 'markerKey,isPausedOrMaxed', sha: 'f55b8a24780c' },
  isQueuePausedOrMaxed: { parameters: 'queueMetaKey,activeKey', sha: '8a781eaa985b' },
  getOrSetMaxEvents: { parameters: 'metaKey', sha: '5e2b8e32db16' },
  deduplicateJob: {
    parameters:
      'deduplicationOpts,jobId,delayedKey,deduplicationKey,eventsKey,maxEvents,prefix,jobName,jobData,fullOpts,parentKey,parentData,parentDependenciesKey,repeatJobKey,timestamp',
    sha: 'acfb7da921b7',
  },
  removeJob: { parameters: 'jobId,hard,baseKey,shouldRemoveDeduplicationKey', sha: 'a1d0b09f1470' },
  removeJobKeys: { parameters: 'jobKey', sha: 'dfb15c17e6e8' },
  isLocked: { parameters: 'prefix,jobId,removeChildren', sha: '160e9a77be2f' },
  pushBackJobWithPriority: { parameters: 'prioritizedKey,priority,jobId', sha: 'a69c12de10b9' },
  removeDeduplicationKeyIfNeededOnRemoval: {
    parameters: 'prefixKey,jobId,deduplicationId',
    sha: '97b14a595d51',
  },
  addJobInTargetList: {
    parameters: 'targetKey,markerKey,pushCmd,isPausedOrMaxed,jobId',
    sha: '1aec9650f92d',
  },
  addDelayedJob: {
    parameters: 'jobId,delayedKey,eventsKey,timestamp,maxEvents,markerKey,delay',
    sha: '1e85025af195',
  },
  moveChildBackToParentDependencies: { parameters: 'jobKey,prevState', sha: '50f9f8fd6f6d' },
};

/** What the check found: nothing, or functions whose text is not the tested one. */
export interface BullmqVerdict {
  /** Names of functions with the expected parameters but another text. Empty for a tested version. */
  untested: string[];
}

/**
 * Judges the installed BullMQ by what it contains, not by its version.
 * @throws CarillonError INCOMPATIBLE_BULLMQ naming each function that is missing or takes other parameters.
 */
export function checkBullmq(): BullmqVerdict {
  const wrong: string[] = [];
  const untested: string[] = [];
  for (const [name, expected] of Object.entries(USED)) {
    const file = bullmqIncludeFile(name);
    const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
    const found = parametersOf(text, name);
    if (found !== expected.parameters) {
      wrong.push(`${name}(${found ?? 'missing'}) instead of ${name}(${expected.parameters})`);
    } else if (textHash(text) !== expected.sha) {
      untested.push(name);
    }
  }
  if (wrong.length > 0) {
    throw new CarillonError('INCOMPATIBLE_BULLMQ', `the installed bullmq has ${wrong.join('; ')}`, {
      todo: 'Install a supported bullmq (>=6.7 <7).',
    });
  }
  return { untested };
}

function parametersOf(text: string, name: string): string | undefined {
  return text.match(new RegExp(`local function ${name}\\(([^)]*)\\)`))?.[1]?.replace(/\s+/g, '');
}

/** White space and line ends do not make another text. */
function textHash(text: string): string {
  return createHash('sha1').update(text.replace(/\s+/g, ' ')).digest('hex').slice(0, 12);
}
