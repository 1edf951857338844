/** Replaces a replica under load, as an orchestrator does: the new one is ready first, and clients learn of it late. */
import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { startReloadable } from '../../support/proxy/reloadable.ts';
import { send } from '../../support/clients/send.ts';

/** Milliseconds until clients stop sending to the old replica. */
const LATE = 1000;
const SLOW = 6000;

test('fails no request when the drain delay is longer than the update of clients takes', async () => {
  const { failed, answered, slow, code } = await replaceUnderLoad('drain: {delay: 4s, timeout: 30s}');
  expect(failed).toEqual([]);
  expect(answered).toBeGreaterThan(20);
  // It was in flight when the listener closed, and was completed.
  expect(slow).toBe(200);
  expect(code).toBe(0);
});

test('fails requests without a drain delay', async () => {
  const { failed, slow, code } = await replaceUnderLoad('drain: {delay: 0, timeout: 30s}');
  expect(failed).not.toEqual([]);
  expect(slow).toBe(200);
  expect(code).toBe(0);
});

async function replaceUnderLoad(drain: string) {
  const upstream = await startHttpUpstream((_n, response, { target }) => {
    setTimeout(() => response.end('seen'), target === '/slow' ? SLOW : 20);
  });
  const given = `listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\n${drain}\n`;
  const yaml = `upstreams: {api: {url: "${upstream.url}", timeout: 20s, perTryTimeout: 20s}}`;
  const [old, next] = [await startReloadable(yaml, { given }), await startReloadable(yaml, { given })];
  let known = [old.url];
  const failed: string[] = [];
  let answered = 0;
  const over = new AbortController();

  const clients = Array.from({ length: 5 }, async () => {
    // Clients of a service keep their connections alive.
    const agent = new Agent({ keepAlive: true });
    onTestFinished(() => agent.destroy());
    for (let n = 0; !over.signal.aborted; n += 1) {
      const url = known[n % known.length] ?? '';
      try {
        const { status } = await send(url, '/', { agent });
        if (status === 200) answered += 1;
        else failed.push(String(status));
      } catch (error) {
        failed.push(String(error));
        await sleep(20);
      }
    }
  });

  await sleep(500);
  known = [old.url, next.url];
  const slow = send(old.url, '/slow');
  await sleep(200);
  old.child.kill('SIGTERM');
  await sleep(LATE);
  known = [next.url];
  const { code } = await old.ended;
  over.abort();
  await Promise.all(clients);
  return { failed, answered, slow: (await slow).status, code };
}
