import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { retry } from '../../../src/library/retry.ts';
import { virtualClock } from '../../support/core/virtual-clock.ts';

test('retries a fetch that finds no server, though it fails with a TypeError', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  let calls = 0;
  const fetched = retry(
    () => {
      calls += 1;
      return fetch(`http://127.0.0.1:${port}/`);
    },
    { attempts: 2, clock: virtualClock() },
  );
  await expect(fetched).rejects.toBeInstanceOf(TypeError);
  expect(calls).toBe(2);
});
