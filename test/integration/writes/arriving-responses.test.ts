/** A response that is still being sent: until its client has all of it, refusals of repeats do not deny the write. */
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { begin, type Received, send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const KEY = ['Idempotency-Key', 'order-1'];
const TTL = 1000;

/** A write whose client has the head of the response, and a part of the body. */
async function startResponding(nextStatus = 201) {
  const held: ServerResponse[] = [];
  const upstream = await startHttpUpstream((nth, response) => {
    if (nth > 1) return void response.writeHead(nextStatus).end('said');
    response.writeHead(201, { 'Content-Length': '8' }).write('paid');
    held.push(response);
  });
  const gate = await startTidegate(
    `upstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}, idempotency: {ttl: ${TTL}ms}}}\n`,
  );
  const post = (more: readonly string[] = []): Promise<Received> =>
    send(gate.url, '/charges', { method: 'POST', headers: [...KEY, ...more], body: 'x' });
  const first = begin(gate.url, '/charges', { method: 'POST', headers: KEY, body: 'x' }).end('x');
  const incoming = await new Promise<NodeJS.ReadableStream>((resolve) => first.once('response', resolve));
  incoming.on('error', () => undefined).resume();
  /** A refusal before the key is claimed, one after it, and what the upstream has received. */
  const refusals = async () => {
    const answers = [await post(['Expect', 'payment']), await post()];
    return [...answers.map(({ status, header }) => [status, header('tidegate-outcome')]), upstream.hits.length];
  };
  return { gate, held, first, incoming, post, refusals };
}

test('a repeat that is refused while the first response is being sent is unknown, and plainly refused afterwards', async () => {
  const { held, incoming, refusals } = await startResponding();
  await sleep(TTL + 100);
  expect(await refusals()).toEqual([[504, 'unknown'], [409, 'unknown'], 1]);
  const isRead = once(incoming, 'end');
  held[0]?.end('done');
  await isRead;
  expect(await refusals()).toEqual([[417, undefined], [409, undefined], 1]);
});

test('a repeat stays unknown if the first response breaks off', async () => {
  const { gate, first, refusals } = await startResponding();
  await sleep(TTL + 100);
  first.destroy();
  await eventually(gate.requests, ({ length }) => length === 1);
  expect(await refusals()).toEqual([[504, 'unknown'], [409, 'unknown'], 1]);
});

test('a repeat that the upstream rejects while the first response is being sent gets the rejection', async () => {
  const { held, incoming, post } = await startResponding(422);
  const { status, header } = await post();
  expect([status, header('tidegate-outcome')]).toEqual([422, undefined]);
  const isRead = once(incoming, 'end');
  held[0]?.end('done');
  await isRead;
});
