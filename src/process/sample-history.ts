import type { AdminOperations } from '../admin/api/admin-operations.ts';
import type { Millis } from '../core/scalars.ts';
import type { ResourceStack } from './resource-stack.ts';

const SAMPLE_INTERVAL: Millis = 1000;

/** Samples the rates each second, so that a page that is opened later shows the last hour. */
export function sampleHistory(
  operations: Pick<AdminOperations, 'sampleRates'>,
  resources: Pick<ResourceStack, 'push'>,
): void {
  // A sample that fails is left out; the next one covers its time.
  const sample = (): void => void operations.sampleRates().catch(() => undefined);
  sample();
  const timer = setInterval(sample, SAMPLE_INTERVAL).unref();
  resources.push(() => Promise.resolve(clearInterval(timer)));
}
