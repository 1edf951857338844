/** `idempotency.replayAnswers`: the response to a write is kept, and repeats by the same client get it from Tidegate. */
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openAdminApi, TOKEN } from '../../support/admin/admin-api.ts';
import type { Received, Sent } from '../../support/clients/send.ts';
import { begin, send, sendAndLeave } from '../../support/clients/send.ts';
import { eventually, startTidegate, type Tidegate } from '../../support/proxy/tidegate.ts';
import { startRedis } from '../../support/redis/redis-server.ts';

const SECRET = 'a secret of at least thirty-two characters';

interface Upstream {
  readonly url: string;
  /** The bodies of requests so far. */
  readonly bodies: string[];
}

type Answer = (response: ServerResponse, nth: number, request: IncomingMessage) => void;

const CREATED: Answer = (response, nth) => {
  response.writeHead(201, {
    'Content-Type': 'application/json',
    'Set-Cookie': 'session=1',
    'X-RateLimit-Remaining': '9',
    'Request-Id': `req_${nth}`,
  });
  response.end(JSON.stringify({ id: `ch_${nth}` }));
};

async function startUpstream(answer: Answer = CREATED): Promise<Upstream> {
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => answer(response, bodies.push(Buffer.concat(chunks).toString()), request));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, bodies };
}

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

interface Settings {
  readonly state?: string;
  readonly idempotency?: string;
  readonly more?: string;
}

function start(url: string, { state = '', idempotency = '', more = '' }: Settings = {}): Promise<Tidegate> {
  return startTidegate(
    `${state}\nupstreams: {api: {url: "${url}", idempotency: {replayAnswers: 1h${idempotency}}${more}}}`,
  );
}

function post(
  gate: Tidegate,
  body: string,
  more: Partial<Sent> & { readonly target?: string } = {},
): Promise<Received> {
  const { target = '/charges', headers = [], ...rest } = more;
  return send(gate.url, target, { method: 'POST', body, ...rest, headers: ['Idempotency-Key', 'k', ...headers] });
}

const database = (folder: string): string =>
  `secret: ${SECRET}\nstate: {store: sqlite, file: ${join(folder, 'state.db')}}`;

describe.each(['memory', 'sqlite'])('with state in %s', (store) => {
  const stateIn = (): Settings => ({ state: store === 'sqlite' ? database(makeFolder()) : '' });

  test('a repeat gets the first response, and nothing is sent', async () => {
    const upstream = await startUpstream();
    const gate = await start(upstream.url, stateIn());
    const first = await post(gate, 'amount=1');
    const repeat = await post(gate, 'amount=1');
    expect([repeat.status, repeat.reason, repeat.body.toString()]).toEqual([201, 'Created', '{"id":"ch_1"}']);
    expect(upstream.bodies).toEqual(['amount=1']);
    expect(first.header('idempotent-replayed')).toBeUndefined();
    expect(repeat.header('idempotent-replayed')).toBe('true');
    expect(repeat.header('tidegate-attempts')).toBe('0');
    expect(repeat.header('request-id')).toBe('req_1');
    expect(repeat.header('content-type')).toBe('application/json');
    for (const name of ['set-cookie', 'x-ratelimit-remaining']) {
      expect([name, first.header(name) === undefined, repeat.header(name)]).toEqual([name, false, undefined]);
    }
    expect(await gate.metric('tidegate_idempotency_keys_total{upstream="api",event="replayed"}')).toBe(1);
    await eventually(gate.requests, (lines) => lines.length === 2);
    expect(gate.requests()[1]).toMatchObject({ status: 201, outcome: 'replayed', attempts: 0, bytesOut: 13 });
  });

  test('another body or query with the key gets a 422', async () => {
    const upstream = await startUpstream();
    const gate = await start(upstream.url, stateIn());
    await post(gate, 'amount=1');
    for (const other of [await post(gate, 'amount=2'), await post(gate, 'amount=1', { target: '/charges?a=1' })]) {
      expect([other.status, other.json()['reason']]).toEqual([422, 'key_reused']);
      expect(other.header('tidegate-outcome')).toBeUndefined();
    }
    expect((await post(gate, 'amount=1')).status).toBe(201);
    expect(upstream.bodies).toHaveLength(1);
    expect(await gate.metric('tidegate_idempotency_keys_total{upstream="api",event="key_reused"}')).toBe(2);
  });

  test('only the client that made the write gets its response', async () => {
    const upstream = await startUpstream();
    const gate = await start(upstream.url, stateIn());
    const of = (...headers: string[]): Promise<Received> => post(gate, 'amount=1', { headers });
    expect((await of('Authorization', 'Bearer a')).body.toString()).toBe('{"id":"ch_1"}');
    expect((await of('Authorization', 'Bearer b')).body.toString()).toBe('{"id":"ch_2"}');
    expect((await of('Authorization', 'Bearer a', 'Cookie', 'user=b')).body.toString()).toBe('{"id":"ch_3"}');
    expect((await of('Authorization', 'Bearer a')).body.toString()).toBe('{"id":"ch_1"}');
    expect((await of('Authorization', 'Bearer b')).body.toString()).toBe('{"id":"ch_2"}');
    expect(upstream.bodies).toHaveLength(3);
  });

  test('of two clients with one credential, only the one that made the write gets its response', async () => {
    const upstream = await startUpstream();
    const { state = '' } = stateIn();
    const gate = await start(upstream.url, { state: `clients: {key: ["header:x-tenant", ip]}\n${state}` });
    const of = (...tenant: string[]): Promise<Received> =>
      post(gate, 'amount=1', { headers: ['Authorization', 'Bearer shared', ...tenant] });
    for (const [i, tenant] of [['X-Tenant', 'a'], ['X-Tenant', 'b'], []].entries()) {
      expect((await of(...tenant)).body.toString()).toBe(`{"id":"ch_${i + 1}"}`);
      expect((await of(...tenant)).header('idempotent-replayed')).toBe('true');
    }
  });

  test('a request that waited for the key gets the response of the first', async () => {
    const answers: (() => void)[] = [];
    const upstream = await startUpstream((response, nth, request) => {
      response.writeHead(200).write('one, ');
      answers.push(() => void response.end(`two of ${nth} for ${request.url ?? ''}`));
    });
    const gate = await start(upstream.url, stateIn());
    const requests = [post(gate, 'amount=1'), post(gate, 'amount=1'), post(gate, 'amount=1')];
    await eventually(
      () => answers.length,
      (count) => count === 1,
    );
    answers[0]?.();
    for (const { body } of await Promise.all(requests)) expect(body.toString()).toBe('one, two of 1 for /charges');
    expect(upstream.bodies).toHaveLength(1);
  });

  test('a forgotten key is that of a new write, whose repeats do not get the earlier response', async () => {
    const statuses = [201, 500];
    const upstream = await startUpstream((response, nth) => response.writeHead(statuses[nth - 1] ?? 200).end(`${nth}`));
    const { state = '' } = stateIn();
    const admin = `admin: {listen: "127.0.0.1:0", token: ${TOKEN}}`;
    const gate = await start(upstream.url, { state: `${admin}\n${state}`, more: ', retry: {attempts: 1}' });
    expect((await post(gate, 'amount=1')).status).toBe(201);
    const api = await openAdminApi(gate.adminUrl ?? '');
    const [{ id } = { id: '' }] = (await api.get('/api/keys')).json()['keys'] as { id: string }[];
    expect((await api.delete(`/api/keys/${id}`)).status).toBe(200);
    expect((await post(gate, 'amount=1')).status).toBe(500);
    const repeat = await post(gate, 'amount=1');
    expect([repeat.status, repeat.body.toString()]).toEqual([200, '3']);
  });

  test('a forgotten key of one credential is not answered with its earlier response after another has used it', async () => {
    const upstream = await startUpstream();
    const { state = '' } = stateIn();
    const gate = await start(upstream.url, { state: `admin: {listen: "127.0.0.1:0", token: ${TOKEN}}\n${state}` });
    const of = (token: string): Promise<Received> => post(gate, 'amount=1', { headers: ['Authorization', token] });
    expect((await of('Bearer old')).body.toString()).toBe('{"id":"ch_1"}');
    const api = await openAdminApi(gate.adminUrl ?? '');
    const [{ id } = { id: '' }] = (await api.get('/api/keys')).json()['keys'] as { id: string }[];
    expect((await api.delete(`/api/keys/${id}`)).status).toBe(200);
    expect((await of('Bearer new')).body.toString()).toBe('{"id":"ch_2"}');
    expect((await of('Bearer old')).body.toString()).toBe('{"id":"ch_3"}');
  });

  test('another write with the key, of another client, leaves the response to the first', async () => {
    const upstream = await startUpstream((response, nth) => response.writeHead(nth === 2 ? 401 : 201).end(`${nth}`));
    const gate = await start(upstream.url, stateIn());
    const of = (token: string, body: string): Promise<Received> =>
      post(gate, body, { headers: ['Authorization', token] });
    expect((await of('Bearer a', 'amount=1')).status).toBe(201);
    expect((await of('Bearer b', 'amount=2')).status).toBe(401);
    expect((await of('Bearer b', 'amount=2')).body.toString()).toBe('3');
    const repeats = [await of('Bearer a', 'amount=1'), await of('Bearer b', 'amount=2')];
    expect(repeats.map(({ body }) => body.toString())).toEqual(['1', '3']);
    expect(upstream.bodies).toHaveLength(3);
  });

  test('an error, a decline and a long response go to the upstream again', async () => {
    const statuses = [402, 500, 200, 200];
    const upstream = await startUpstream((response, nth) => {
      const status = statuses[nth - 1] ?? 200;
      response.writeHead(status).end(status === 200 ? 'x'.repeat(100_000) : 'no');
    });
    const gate = await start(upstream.url, { ...stateIn(), more: ', retry: {attempts: 1}' });
    for (const status of statuses) expect((await post(gate, 'amount=1')).status).toBe(status);
    expect(upstream.bodies).toHaveLength(4);
  });

  test('a write that was finished without its client has its response kept', async () => {
    const { bodies, repeat } = await repeatFinished(CREATED, stateIn());
    expect([repeat.status, repeat.body.toString()]).toEqual([201, '{"id":"ch_1"}']);
    expect(repeat.header('idempotent-replayed')).toBe('true');
    expect(bodies).toHaveLength(1);
  });

  test('a write whose client leaves within the response has its response kept, for requests that wait for it too', async () => {
    const answers: ServerResponse[] = [];
    const upstream = await startUpstream((response) => {
      response.writeHead(201).write('one, ');
      answers.push(response);
    });
    const gate = await start(upstream.url, { ...stateIn(), more: ', retry: {onClientGone: finish}' });
    const sent = { method: 'POST', headers: ['Idempotency-Key', 'k'], body: 'amount=1' };
    await new Promise<void>((resolve) => {
      const outgoing = begin(gate.url, '/charges', sent, (incoming) => {
        incoming.on('error', () => undefined);
        incoming.once('data', () => resolve(void outgoing.destroy()));
      });
      outgoing.end(sent.body);
    });
    const [line] = await eventually(gate.requests, ({ length }) => length === 1);
    expect(line).toMatchObject({ status: 201, bytesOut: 5, cut: true });
    const waiting = post(gate, 'amount=1');
    await eventually(
      () => gate.metric('tidegate_bound_used_ratio{bound="key_waits"}'),
      (used) => used > 0,
    );
    answers[0]?.end('two');
    for (const { status, body } of [await waiting, await post(gate, 'amount=1')]) {
      expect([status, body.toString()]).toEqual([201, 'one, two']);
    }
    expect(upstream.bodies).toHaveLength(1);
  });

  test.each([1, 3])('and all of its body, of %i chunks, if a rule reads codes in it', async (chunks) => {
    const answer: Answer = (response, nth) => {
      response.writeHead(200, { 'Content-Type': 'application/json' });
      const body = JSON.stringify({ id: `ch_${nth}` });
      const length = Math.ceil(body.length / chunks);
      let at = 0;
      const write = (): void => {
        response.write(body.slice(at, (at += length)), () =>
          at < body.length ? setTimeout(write, 20) : response.end(),
        );
      };
      write();
    };
    const throttle = 'throttle: {codeField: [errors.*.code], answers: [{status: 200, code: THROTTLED, is: throttled}]}';
    const { bodies, repeat } = await repeatFinished(answer, { ...stateIn(), more: `, ${throttle}` });
    expect([repeat.status, repeat.body.toString()]).toEqual([200, '{"id":"ch_1"}']);
    expect(repeat.header('idempotent-replayed')).toBe('true');
    expect(bodies).toHaveLength(1);
  });

  test.each<[string, Answer]>([
    [
      'trailers',
      (response) => {
        response.writeHead(200, { Trailer: 'X-Sum' });
        response.write('paid');
        response.addTrailers({ 'X-Sum': '1' });
        response.end();
      },
    ],
    [
      'an event stream',
      (response) => response.writeHead(200, { 'Content-Type': 'text/event-stream' }).end('data: 1\n\n'),
    ],
  ])('but not with %s', async (_, answer) => {
    const { bodies, repeat } = await repeatFinished(answer, stateIn());
    expect([repeat.status, repeat.header('idempotent-replayed')]).toEqual([200, undefined]);
    expect(bodies).toHaveLength(2);
  });
});

/** The repeat of a write that was finished after its client had disconnected. It waits for the key of that write. */
async function repeatFinished(
  answer: Answer,
  { more = '', ...settings }: Settings,
): Promise<{ readonly bodies: readonly string[]; readonly repeat: Received }> {
  let respond: (() => void) | undefined;
  const upstream = await startUpstream((response, nth, request) => {
    if (nth > 1) return answer(response, nth, request);
    respond = () => answer(response, nth, request);
  });
  const gate = await start(upstream.url, { ...settings, more: `, retry: {onClientGone: finish}${more}` });
  await sendAndLeave(
    gate.url,
    '/charges',
    { method: 'POST', headers: ['Idempotency-Key', 'k'], body: 'amount=1' },
    () => respond !== undefined,
  );
  const repeat = post(gate, 'amount=1');
  await eventually(
    () => gate.metric('tidegate_bound_used_ratio{bound="key_waits"}'),
    (used) => used > 0,
  );
  respond?.();
  return { bodies: upstream.bodies, repeat: await repeat };
}

test.each(['POST', 'PUT', 'PATCH', 'DELETE'])(
  'the response to a %s that is not ready yet is not kept',
  async (method) => {
    const upstream = await startUpstream((response, nth) => response.writeHead(nth === 1 ? 202 : 200).end(`${nth}`));
    const routes = 'routes: [{path: /, upstream: api, poll: {notReady: [202]}}]';
    const gate = await start(upstream.url, { state: routes });
    const answers: unknown[] = [];
    for (let i = 0; i < 3; i += 1) {
      const { status, body } = await post(gate, 'amount=1', { method });
      answers.push([status, body.toString()]);
    }
    // The result itself is kept.
    expect(answers).toEqual([
      [202, '1'],
      [200, '2'],
      [200, '2'],
    ]);
  },
);

test('a response is kept after the upstream has forgotten its key', async () => {
  const upstream = await startUpstream();
  const gate = await start(upstream.url, { idempotency: ', ttl: 50ms' });
  await post(gate, 'amount=1');
  await new Promise((resolve) => {
    setTimeout(resolve, 100);
  });
  expect((await post(gate, 'amount=1')).body.toString()).toBe('{"id":"ch_1"}');
  expect((await post(gate, 'amount=2')).status).toBe(422);
  expect(upstream.bodies).toHaveLength(1);
});

test('after its time, the upstream gets the repeat', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", idempotency: {replayAnswers: 50ms}}}`);
  await post(gate, 'amount=1');
  await new Promise((resolve) => {
    setTimeout(resolve, 100);
  });
  expect((await post(gate, 'amount=1')).body.toString()).toBe('{"id":"ch_2"}');
});

test('a key in a JSON body, and a body after Expect: 100-continue', async () => {
  const upstream = await startUpstream();
  const gate = await start(upstream.url, { idempotency: ', jsonField: key' });
  const charge = (amount: number): Promise<Received> =>
    send(gate.url, '/charges', {
      method: 'POST',
      headers: ['Content-Type', 'application/json', 'Expect', '100-continue'],
      body: JSON.stringify({ key: 'k', amount }),
    });
  await charge(1);
  expect((await charge(1)).body.toString()).toBe('{"id":"ch_1"}');
  expect((await charge(2)).status).toBe(422);
  const byHeader = await start(upstream.url);
  const expecting = { headers: ['Expect', '100-continue'] };
  await post(byHeader, 'amount=1', expecting);
  expect((await post(byHeader, 'amount=1', expecting)).header('idempotent-replayed')).toBe('true');
});

test('an encoded body is only for clients that accept the same encodings', async () => {
  const upstream = await startUpstream((response) =>
    response.writeHead(200, { 'Content-Encoding': 'gzip' }).end(gzipSync('paid')),
  );
  const gate = await start(upstream.url);
  const accepting = (encoding: string): Promise<Received> =>
    post(gate, 'amount=1', { headers: ['Accept-Encoding', encoding] });
  await accepting('gzip');
  expect((await accepting('gzip')).header('idempotent-replayed')).toBe('true');
  expect((await accepting('identity')).header('idempotent-replayed')).toBeUndefined();
  expect(upstream.bodies).toHaveLength(2);
});

test.each([429, 503])('a kept %i is repeated with a Retry-After: until when it is kept', async (status) => {
  const upstream = await startUpstream((response) => {
    response.writeHead(status, { 'Idempotent-Replayed': 'true', 'Retry-After': '7' }).end('stored');
  });
  const gate = await start(upstream.url, { idempotency: ', replayedHeader: Idempotent-Replayed' });
  const first = await post(gate, 'amount=1');
  expect([first.status, first.header('retry-after')]).toEqual([status, '7']);
  const repeat = await post(gate, 'amount=1');
  expect([repeat.status, repeat.body.toString(), upstream.bodies.length]).toEqual([status, 'stored', 1]);
  const seconds = Number(repeat.header('retry-after'));
  expect(seconds).toBeGreaterThan(3600 - 120);
  expect(seconds).toBeLessThanOrEqual(3600);
  expect(repeat.header('ratelimit')).toBeUndefined();
  await eventually(gate.requests, (lines) => lines.length === 2);
  expect(gate.requests()[1]).toMatchObject({ status, outcome: 'replayed', retryAfterFrom: 'tidegate' });
});

test('a repeat gets no times and limits of the upstream, by fields that are always read or by those of `throttle`', async () => {
  const times = {
    'Retry-After-Ms': '2',
    'X-Shopify-Shop-Api-Call-Limit': '5/40',
    'X-Reset': '1',
    'X-Limit-Name': 'all',
  };
  const upstream = await startUpstream((response) => {
    response.writeHead(429, { 'Idempotent-Replayed': 'true', 'X-Other': '1', ...times }).end('stored');
  });
  const throttle =
    'throttle: {limitHeader: X-Limit-Name, answers: [{status: 429, wait: {header: X-Reset, format: seconds}}]}';
  const more = `, retry: {attempts: 1}, ${throttle}`;
  const gate = await start(upstream.url, { idempotency: ', replayedHeader: Idempotent-Replayed', more });
  const first = await post(gate, 'amount=1');
  const repeat = await post(gate, 'amount=1');
  expect([repeat.status, repeat.header('x-other'), upstream.bodies.length]).toEqual([429, '1', 1]);
  for (const name of Object.keys(times)) {
    expect([name, first.header(name) === undefined, repeat.header(name)]).toEqual([name, false, undefined]);
  }
});

test('the header that marks a stored response is that of the upstream', async () => {
  const upstream = await startUpstream();
  const gate = await start(upstream.url, { idempotency: ', replayedHeader: X-Replayed' });
  await post(gate, 'amount=1');
  const repeat = await post(gate, 'amount=1');
  expect([repeat.header('x-replayed'), repeat.header('idempotent-replayed')]).toEqual(['true', undefined]);
});

test('a restart finds the responses in the database, which it cannot read without the secret', async () => {
  const folder = makeFolder();
  const upstream = await startUpstream();
  const first = await start(upstream.url, { state: database(folder) });
  await post(first, 'amount=1', { headers: ['Authorization', 'Bearer top-secret'] });
  await first.close();
  const bytes = readFileSync(join(folder, 'state.db')).toString('latin1');
  for (const text of ['ch_1', 'top-secret', 'application/json']) {
    expect([text, bytes.includes(text)]).toEqual([text, false]);
  }
  const second = await start(upstream.url, { state: database(folder) });
  const repeat = await post(second, 'amount=1', { headers: ['Authorization', 'Bearer top-secret'] });
  expect([repeat.header('idempotent-replayed'), repeat.body.toString()]).toEqual(['true', '{"id":"ch_1"}']);
  await second.close();
  const other = await start(upstream.url, { state: database(folder).replace('a secret', 'b secret') });
  const sentAgain = await post(other, 'amount=1', { headers: ['Authorization', 'Bearer top-secret'] });
  expect(sentAgain.body.toString()).toBe('{"id":"ch_2"}');
});

test('a metric shows how much is kept', async () => {
  const upstream = await startUpstream((response) => response.end('x'.repeat(60_000)));
  const gate = await start(upstream.url, { state: database(makeFolder()) });
  await post(gate, 'amount=1');
  expect(await gate.metric('tidegate_bound_used_ratio{bound="kept_responses"}')).toBeGreaterThan(0.0001);
});

test.each(['memory', 'SQLite', 'Redis'])(
  '`limits.keptResponses` bounds the number of responses in %s, and the oldest goes first',
  async (store) => {
    const upstream = await startUpstream();
    const states = {
      memory: () => '',
      SQLite: () => database(makeFolder()),
      Redis: async () => `secret: ${SECRET}\nstate: {store: redis, url: "${(await startRedis()).url}", timeout: 240ms}`,
    };
    const state = await states[store as keyof typeof states]();
    const gate = await start(upstream.url, { state: `limits: {keptResponses: 2}\n${state}` });
    const pay = (key: string) =>
      send(gate.url, '/charges', { method: 'POST', body: key, headers: ['Idempotency-Key', key] });
    const keys = ['one', 'two', 'three'];
    for (const key of keys) await pay(key);
    await eventually(
      () => gate.metric('tidegate_bound_reached_total{bound="kept_responses"}'),
      (count) => count === 1,
    );
    expect(await gate.metric('tidegate_bound_used_ratio{bound="kept_responses"}')).toBe(1);
    const replayed: unknown[] = [];
    for (const key of keys.toReversed()) replayed.push((await pay(key)).header('idempotent-replayed'));
    expect(replayed).toEqual(['true', 'true', undefined]);
  },
);
