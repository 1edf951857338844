import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import type { Millis } from '../../../src/core/scalars.ts';

export interface CheckLatencies {
  /** Latency of each response, measured from when the request was due. */
  readonly times: readonly Millis[];
  readonly statuses: ReadonlyMap<number, number>;
  readonly failed: number;
}

/** As many as a typical ingress. */
const CONNECTIONS = 32;

/** Sends evenly spaced checks at `rate` a second. @param url of Tidegate */
export async function sendEvenly(url: string, rate: number, lasts: Millis): Promise<CheckLatencies> {
  const pool = new Pool(url, { connections: CONNECTIONS });
  const times: Millis[] = [];
  const statuses = new Map<number, number>();
  const pending = new Set<Promise<void>>();
  let failed = 0;
  const ask = async (n: number, due: Millis): Promise<void> => {
    try {
      const headers = {
        'x-forwarded-uri': `/v1/charges/${n}`,
        'x-forwarded-method': 'POST',
        'x-api-key': `key-${n % 50}`,
      };
      const { statusCode, body } = await pool.request({ path: '/check?wait=0', method: 'GET', headers });
      await body.dump();
      times.push(performance.now() - due);
      statuses.set(statusCode, (statuses.get(statusCode) ?? 0) + 1);
    } catch {
      failed += 1;
    }
  };
  const since = performance.now();
  const all = Math.round((rate * lasts) / 1000);
  for (let n = 0; n < all; ) {
    for (; n < all && since + (1000 * n) / rate <= performance.now(); n += 1) {
      const asked = ask(n, since + (1000 * n) / rate);
      pending.add(asked);
      void asked.then(() => pending.delete(asked));
    }
    await sleep(1);
  }
  await Promise.all(pending);
  await pool.close();
  return { times, statuses, failed };
}
