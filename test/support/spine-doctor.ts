import { expect } from 'vitest';
import { examine } from '../../src/client/doctor.js';
import type { DoctorCheck } from '../../src/client/doctor-finding.js';
import type { Spine } from './spine.js';

/**
 * I4, as every fault test ends: `doctor` finds nothing in the namespace.
 * @param except checks that the test broke on purpose, or that its set-up cannot satisfy.
 */
export async function expectHealthy(spine: Spine, ...except: DoctorCheck[]): Promise<void> {
  const virtualClock = (await spine.client.exists(spine.keys.clock)) === 1;
  const { namespace, prefix } = spine;
  // A virtual clock leaps past every heartbeat.
  if (virtualClock) except.push('leader');
  const { findings } = await examine(spine.client, { namespace, prefix, virtualClock }, { pause: 300 });
  expect(findings.filter(({ check }) => !except.includes(check))).toEqual([]);
}
