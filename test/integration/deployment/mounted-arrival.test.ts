/** A request of a mounted proxy counts from its arrival, however long the hooks of the application take. */
import { performance } from 'node:perf_hooks';
import type { FastifyServerOptions } from 'fastify';
import { expect, test } from 'vitest';
import type { ConfigInput } from '../../../src/library/index.ts';
import { pause } from '../../support/pause.ts';
import { startApplication } from '../../support/proxy/fastify-application.ts';
import { send } from '../../support/clients/send.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

/** An application whose hook takes `hookTime`, on two routes; the upstream answers `status`. */
async function startWithHook(hookTime: number, status: number, server: FastifyServerOptions) {
  const upstream = await startHttpUpstream((_nth, response) => response.writeHead(status).end());
  /** How long each run of the hook took. */
  const held: number[] = [];
  const config: ConfigInput = {
    upstreams: { api: { url: upstream.url } },
    routes: [
      { path: '/', upstream: 'api' },
      { path: '/report', upstream: 'api', poll: { backOff: { strategy: 'fixed', baseInterval: '200ms' } } },
    ],
  };
  const { url, mounted } = await startApplication(
    { config },
    {
      server,
      extend: (app) =>
        app.addHook('preHandler', async () => {
          const began = performance.now();
          await pause(hookTime);
          held.push(performance.now() - began);
        }),
    },
  );
  return { url, mounted, held, hits: upstream.hits };
}

test.each<[string, FastifyServerOptions]>([
  ['with a log', {}],
  ['without a log', { logger: false }],
  ['with a handlerTimeout and no log', { logger: false, handlerTimeout: 60_000 }],
])('its duration includes the hooks, and the wait of Prefer has begun before them: %s', async (_, server) => {
  const { url, mounted, held, hits } = await startWithHook(1100, 202, server);
  expect((await send(url, '/pay/x')).status).toBe(202);
  const sums = (await mounted.metrics()).match(/^tidegate_request_duration_seconds_sum\{.*route="\/".*\} (\S+)$/mu);
  expect(Number(sums?.[1]) * 1000).toBeGreaterThanOrEqual(held[0] ?? Number.POSITIVE_INFINITY);
  const late = await send(url, '/pay/report', { headers: ['Prefer', 'wait=1'] });
  expect([late.status, late.header('tidegate-polls')]).toEqual([202, undefined]);
  expect(hits).toHaveLength(2);
});

test('its client is on time at its Retry-After although its hook outlasts the two seconds of the slot', async () => {
  const upstream = await startHttpUpstream((_nth, response) => response.end('ok'));
  const config: ConfigInput = {
    upstreams: {
      api: { url: upstream.url, rateLimit: { initialRate: '0.5/s', maxRate: '0.5/s' }, queue: { maxWait: '0s' } },
    },
    clients: { key: ['header:x-api-key'] },
  };
  const ask = async (client: string, ...more: string[]) =>
    send(url, '/pay/', { headers: ['X-Api-Key', client, ...more] });
  let arrivedAt = 0;
  const { url } = await startApplication(
    { config },
    {
      extend: (app) =>
        app.addHook('onRequest', async ({ headers }) => {
          if (headers['x-hook'] === undefined) return;
          arrivedAt = performance.now();
          await pause(2500);
          // Another client takes the token that is free by then, so none is when the hook ends.
          while ((await ask('other')).status !== 200) await pause(50);
        }),
    },
  );
  for (;;) {
    const askedAt = performance.now();
    const refused = await ask('late');
    if (refused.status !== 429) continue;
    const wait = 1000 * Number(refused.header('retry-after'));
    await pause(wait);
    const answer = await ask('late', 'X-Hook', 'slow');
    // On a machine that is busy, it comes too late.
    if (arrivedAt - askedAt - wait > 1000) continue;
    expect([answer.status, answer.header('retry-after')]).toEqual([200, undefined]);
    return;
  }
});
