import { setImmediate as nextTurn } from 'node:timers/promises';
import { batchWhenBusy } from '../../src/http/undici/write-batching.ts';

/** Makes this process as busy as under load, so that small writes are sent at the end of the same turn. */
export async function simulateLoad(): Promise<void> {
  for (let i = 0; i < 200; i += 1) {
    batchWhenBusy(() => undefined);
    await nextTurn();
  }
}
