import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { KEPT } from '../../src/cli/check/describe-memory.ts';

const SCRIPT = fileURLToPath(new URL('../support/million-clients.ts', import.meta.url));
const MILLION = 1_000_000;

/** Bytes for those of this window and the last. */
const ADDRESSES = 2 * 25_000 * 200;

interface Told {
  /** Held in the end. */
  readonly bytes: number;
  readonly tracked: number;
  readonly limits: number;
  readonly bounds: Readonly<Record<string, { readonly used: number; readonly reached: number }>>;
}

async function run(scope: 'upstream' | 'client', count: number, maxTracked: number): Promise<Told> {
  const args = ['--expose-gc', '--max-old-space-size=256', SCRIPT, scope, String(count), String(maxTracked)];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return JSON.parse(stdout) as Told;
}

test('a million clients leave no more behind than as many as may be remembered', async () => {
  const { bytes, tracked, bounds } = await run('upstream', MILLION, 20_000);
  expect(tracked).toBe(20_000);
  expect(bounds['clients']).toEqual({ used: 1, reached: MILLION - 20_000 });
  // And of addresses no more than that in this window, and in the last.
  expect(bounds['addresses']?.used).toBeLessThanOrEqual(1);
  expect(bounds['addresses']?.reached).toBeGreaterThan(100_000);
  expect(bytes).toBeLessThan(20_000 * KEPT.client + ADDRESSES);
}, 60_000);

test('nor do those that have limits of their own', async () => {
  const { bytes, tracked, limits, bounds } = await run('client', 300_000, 20_000);
  expect({ tracked, limits }).toEqual({ tracked: 20_000, limits: 2000 });
  expect(bounds['client_limits']).toEqual({ used: 1, reached: 30_000 - 2000 });
  expect(bytes).toBeLessThan(20_000 * KEPT.client + 2000 * KEPT.limit + ADDRESSES);
}, 60_000);
