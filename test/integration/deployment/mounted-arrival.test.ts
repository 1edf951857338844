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
