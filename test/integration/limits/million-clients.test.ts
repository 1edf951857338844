import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { BYTES_EACH } from '../../../src/cli/check/describe-memory.ts';

const SCRIPT = fileURLToPath(new URL('../../support/core/million-clients.ts', import.meta.url));
const MILLION = 1_000_000;

/** Bytes for the addresses of this window and the last. */
const ADDRESSES = 2 * 25_000 * 200;

interface Measurement {
  /** Heap in use at the end. */
  readonly bytes: number;
  readonly tracked: number;
  readonly limits: number;
  readonly bounds: Readonly<Record<string, { readonly used: number; readonly reached: number }>>;
}

async function run(scope: 'upstream' | 'client', count: number, maxTracked: number): Promise<Measurement> {
  const args = ['--expose-gc', '--max-old-space-size=256', SCRIPT, scope, String(count), String(maxTracked)];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return JSON.parse(stdout) as Measurement;
}

test('keeps only the bounded number of client records after a million clients', async () => {
  const { bytes, tracked, bounds } = await run('upstream', MILLION, 20_000);
  expect(tracked).toBe(20_000);
  expect(bounds['clients']).toEqual({ used: 1, reached: MILLION - 20_000 });
  // Nor are there more addresses than the bound in this window and the last.
  expect(bounds['addresses']?.used).toBeLessThanOrEqual(1);
  expect(bounds['addresses']?.reached).toBeGreaterThan(100_000);
  expect(bytes).toBeLessThan(20_000 * BYTES_EACH.client + ADDRESSES);
});

test('keeps only as many when each client has its own limit', async () => {
  const { bytes, tracked, limits, bounds } = await run('client', 300_000, 20_000);
  expect({ tracked, limits }).toEqual({ tracked: 20_000, limits: 2000 });
  expect(bounds['client_limits']).toEqual({ used: 1, reached: 30_000 - 2000 });
  expect(bytes).toBeLessThan(20_000 * BYTES_EACH.client + 2000 * BYTES_EACH.limit + ADDRESSES);
});
