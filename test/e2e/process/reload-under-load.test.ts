/** Fifty reloads in a row under mixed traffic do not affect any request. */
import { createHash } from 'node:crypto';
import { Agent } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { pause } from '../../support/pause.ts';
import type { Reloadable } from '../../support/proxy/reloadable.ts';
import { startReloadable } from '../../support/proxy/reloadable.ts';
import { send } from '../../support/clients/send.ts';
import { eventually } from '../../support/proxy/tidegate.ts';

const RELOADS = 50;
const PATIENCE = 120_000;

/** Echoes the method and a digest of the body; streams the response slowly for paths with "stream". */
function startEcho() {
  return startHttpUpstream((_n, response, hit) => {
    if (!hit.target.includes('stream')) return void response.end(`${hit.method} ${hit.sha256}`);
    let left = 10;
    const timer = setInterval(() => {
      response.write('piece ');
      left -= 1;
      if (left > 0) return;
      clearInterval(timer);
      response.end('end');
    }, 30);
  });
}

interface Results {
  readonly statuses: Map<number, number>;
  readonly wrong: string[];
}

/** One client that sends requests on one keep-alive connection. */
async function ask(gate: Reloadable, key: string, until: () => boolean, results: Results): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  for (let n = 0; !until(); n += 1) {
    const headers = ['x-api-key', key];
    const kind = n % 4;
    try {
      if (kind === 3) {
        const { status, body } = await send(gate.url, '/stream', { agent, headers });
        note(results, status, body.toString() === `${'piece '.repeat(10)}end`, `stream: ${status} ${body.toString()}`);
      } else {
        const sent = kind === 0 ? undefined : 'x'.repeat(1000 * (n % 50));
        const options = sent === undefined ? {} : { method: 'POST', body: sent };
        const { status, body } = await send(gate.url, `/${kind}`, { agent, headers, ...options });
        const digest = createHash('sha256')
          .update(sent ?? '')
          .digest('hex');
        note(
          results,
          status,
          body.toString() === `${sent === undefined ? 'GET' : 'POST'} ${digest}`,
          `${status} ${body.toString()}`,
        );
      }
    } catch (error) {
      results.wrong.push(String(error));
    }
  }
}

function note({ statuses, wrong }: Results, status: number, isRight: boolean, description: string): void {
  statuses.set(status, (statuses.get(status) ?? 0) + 1);
  if (!isRight) wrong.push(description);
}

/** Each configuration differs from the previous one in settings that affect every request. */
function configOf(n: number, urls: readonly string[]): string {
  const url = urls[n % 2] ?? '';
  const other = n % 3 === 0 ? `, other: {url: "${urls[0] ?? ''}"}` : '';
  const route = n % 3 === 0 ? '[{path: /, upstream: api}, {path: /2, upstream: other}]' : '[{path: /, upstream: api}]';
  const scope = n % 5 === 0 ? 'client' : 'upstream';
  const api = [
    // Each URL is used twice in a row, so that connections are kept as often as they are replaced.
    `url: "${n % 4 < 2 ? url : (urls[0] ?? '')}"`,
    `timeout: ${20 + n}s`,
    `retry: {attempts: ${1 + (n % 4)}, budget: {burst: ${10 + n}}}`,
    `rateLimit: {scope: ${scope}, maxRate: ${5000 + n}/s}`,
    `queue: {maxWait: ${2 + (n % 3)}s, maxDepth: ${1000 + n}}`,
  ];
  const classes = `{key: [header:x-api-key, ip], classes: {gold: {match: {key: ["k1*"]}, weight: ${1 + (n % 7)}}}}`;
  return `clients: ${classes}\nupstreams: {api: {${api.join(', ')}}${other}}\nroutes: ${route}`;
}

test(
  'fifty reloads under load fail no request and close no client connection',
  async () => {
    const upstreams = [await startEcho(), await startEcho()];
    const urls = upstreams.map(({ url }) => url);
    const gate = await startReloadable(configOf(0, urls));
    let isOver = false;
    const results: Results = { statuses: new Map(), wrong: [] };
    const clients = Array.from({ length: 16 }, (_, i) => ask(gate, `k${i}`, () => isOver, results));
    for (let n = 1; n <= RELOADS; n += 1) {
      gate.rewrite(configOf(n, urls));
      await eventually(gate.reloads, (count) => count === n);
      await pause(50);
    }
    isOver = true;
    await Promise.all(clients);
    expect(gate.problems()).toEqual([]);
    expect(results.wrong).toEqual([]);
    expect([...results.statuses.keys()]).toEqual([200]);
    expect(results.statuses.get(200)).toBeGreaterThan(200);
    for (const { hits } of upstreams) expect(hits.length).toBeGreaterThan(50);
    // The last reload succeeded.
    expect(await gate.metric('tidegate_config_last_reload_successful')).toBe(1);
    gate.child.kill('SIGTERM');
    const { code, stderr } = await gate.ended;
    expect([code, stderr]).toEqual([0, '']);
  },
  PATIENCE,
);
