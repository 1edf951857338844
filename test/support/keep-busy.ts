import { setImmediate as nextTurn } from 'node:timers/promises';
import { sendInTurn } from '../../src/http/undici/write-batching.ts';

/** Has this process be as busy as under a load: what is small is then sent at the end of the turn it came in. */
export async function keepBusy(): Promise<void> {
  for (let i = 0; i < 200; i += 1) {
    sendInTurn(() => undefined);
    await nextTurn();
  }
}
