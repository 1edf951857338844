/** The promises of docs/migration.md, with the configurations that it shows. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { freeUrl, startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { pause } from '../../support/pause.ts';
import { send } from '../../support/clients/send.ts';
import { readSnippets } from '../../support/documents/snippets.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

const text = readFileSync(fileURLToPath(new URL('../../../docs/migration.md', import.meta.url)), 'utf8');

/** The first configuration under a heading, with another upstream in place of its own. */
function configUnder(heading: string, url: string): string {
  const from = text.indexOf(`${heading}\n`);
  const snippet = readSnippets(text.slice(from)).find(({ language }) => language === 'yaml');
  if (from < 0 || snippet === undefined) throw new Error(`nothing under ${heading}`);
  return snippet.text.replace(/url: .*/, `url: ${url}`);
}

interface Answered {
  readonly status: number;
  readonly why: unknown;
}

/** Restarts an application under 25 requests a second. @param down how long nothing listens, in ms */
async function restart(config: (url: string) => string, down: number): Promise<readonly Answered[]> {
  const url = await freeUrl();
  const listen = async () => {
    const server = createServer((_request, response) => response.end('fine'));
    server.listen(Number(new URL(url).port), '127.0.0.1');
    await once(server, 'listening');
    return async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    };
  };
  let close = await listen();
  const gate = await startTidegate(config(url));
  const all: Promise<Answered>[] = [];
  const ask = async (n: number): Promise<Answered> => {
    // Requests in flight when it stops may be repeated.
    const write = { method: 'POST', body: 'x', headers: ['Idempotency-Key', `key-${n}`] };
    const answer = await send(gate.url, '/', n % 2 === 0 ? write : {});
    return { status: answer.status, why: answer.status === 200 ? undefined : answer.json()['reason'] };
  };
  const timer = setInterval(() => all.push(ask(all.length)), 40);
  try {
    await pause(1000);
    await close();
    await pause(down);
    close = await listen();
    await pause(500);
  } finally {
    clearInterval(timer);
  }
  const answers = await Promise.all(all);
  await close();
  return answers;
}

const HOLD = '## Hold requests while an application restarts';

test('queues requests while an application restarts for four seconds, and no client gets an error', async () => {
  const answers = await restart((url) => configUnder(HOLD, url), 4000);
  expect(answers.length).toBeGreaterThan(50);
  expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
});

test('does not hide the same restart with the defaults', async () => {
  const answers = await restart((url) => `upstreams: {app: {url: "${url}"}}`, 4000);
  expect(answers.filter(({ status }) => status !== 200).length).toBeGreaterThan(0);
});

test('counts a 503 of nginx as a rejection, but not one of the application behind it', async () => {
  const upstream = await startHttpUpstream((n, response) => {
    if (n === 1) {
      response.writeHead(503, ['Server', 'nginx/1.29.3', 'Content-Type', 'text/html', 'Content-Length', '5']);
      return response.end('<html');
    }
    if (n === 2) return response.end('fine');
    response.writeHead(503, ['Server', 'nginx/1.29.3', 'Content-Type', 'application/json', 'Content-Length', '2']);
    return response.end('{}');
  });
  const gate = await startTidegate(configUnder("### An upstream that refuses with nginx's 503", upstream.url));
  const answer = await send(gate.url, '/');
  expect([answer.status, answer.header('tidegate-attempts')]).toEqual([200, '2']);
  // The client stays away for as long as `wait` says.
  expect((upstream.hits[1]?.at ?? 0) - (upstream.hits[0]?.at ?? 0)).toBeGreaterThan(990);
  const throttled = 'tidegate_upstream_throttled_total{upstream="behind-nginx"';
  const count = async () => {
    const lines = (await (await fetch(`${gate.adminUrl}/metrics`)).text()).split('\n');
    return lines
      .filter((line) => line.startsWith(throttled))
      .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
  };
  await eventually(count, (seen) => seen === 1);
  await send(gate.url, '/', { method: 'POST', body: 'x' });
  expect(await count()).toBe(1);
});
