import { constants } from 'node:http2';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { makeCertificates } from '../../support/certificates.ts';
import { sendHttp2, openHttp2 } from '../../support/clients/http2-client.ts';
import type { Answerer, HttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { pause } from '../../support/pause.ts';
import { keepAlive, send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

/** Fast, and without jitter: a time in whole seconds is 1. */
const QUICK = 'backOff: {strategy: fixed, baseInterval: 200ms}';

/** The n-th response; the last one repeats. */
function say(...statuses: (number | [status: number, headers: string[]])[]): Answerer {
  return (n, response) => {
    const each = statuses[Math.min(n, statuses.length) - 1] ?? 500;
    const [status, headers] = typeof each === 'number' ? [each, []] : each;
    response.writeHead(status, headers).end(`answer ${n}`);
  };
}

/** @param poll further poll settings of the route; @param upstream further settings of the upstream */
async function start(answer: Answerer, poll = QUICK, upstream = '', more = '') {
  const api = await startHttpUpstream(answer);
  const gate = await startTidegate(`${more}
upstreams: {api: {url: "${api.url}"${upstream}}}
routes: [{path: /, upstream: api, poll: {${poll}}}]
clients: {key: [header:x-api-key]}
`);
  return { api, gate };
}

const wait = (seconds: number, ...headers: string[]) => ({ headers: ['Prefer', `wait=${seconds}`, ...headers] });
const polls = (outcome: string) => `tidegate_polls_total{route="/",outcome="${outcome}"}`;
const waiting = 'tidegate_polls_waiting{route="/"}';
const gaps = ({ hits }: HttpUpstream) => hits.slice(1).map(({ at }, i) => at - (hits[i]?.at ?? 0));

/** Waits, and disconnects after this many polls. */
async function askAndLeave(url: string, { hits }: HttpUpstream, times: number): Promise<void> {
  const leaving = new AbortController();
  const left = send(url, '/', { ...wait(30), signal: leaving.signal }).catch((error: unknown) => error);
  await eventually(
    () => hits,
    ({ length }) => length >= times,
  );
  leaving.abort();
  expect(await left).toBeInstanceOf(Error);
}

function withFixedRandom(): void {
  const spy = vi.spyOn(Math, 'random').mockReturnValue(0);
  onTestFinished(() => spy.mockRestore());
}

describe('a client that waits', () => {
  test('gets the response once it is ready, and the unready ones are discarded', async () => {
    const { api, gate } = await start(say(202, 202, [200, ['X-Result', 'done']]));
    const answer = await send(gate.url, '/job?id=7', wait(30));
    expect(answer.status).toBe(200);
    expect(answer.body.toString()).toBe('answer 3');
    expect(answer.header('x-result')).toBe('done');
    expect(answer.header('preference-applied')).toBe('wait=30');
    expect(answer.header('tidegate-polls')).toBe('3');
    expect(answer.header('tidegate-attempts')).toBe('3');
    expect(answer.header('retry-after')).toBeUndefined();
    expect(api.hits.map(({ target }) => target)).toEqual(['/job?id=7', '/job?id=7', '/job?id=7']);
    expect(api.hits[2]?.headers).toContain('wait=30'); // end to end: RFC 7240, section 2
    for (const gap of gaps(api)) expect(gap).toBeGreaterThanOrEqual(199);
    expect(gate.requests()).toEqual([
      expect.objectContaining({ status: 200, outcome: 'forwarded', polls: 3, attempts: 3 }),
    ]);
    expect(await gate.metric(polls('not_ready'))).toBe(1);
    expect(await gate.metric(polls('ready'))).toBe(1);
    expect(await gate.metric(waiting)).toBe(0);
    expect(await gate.metric('tidegate_poll_wait_seconds_count{route="/"}')).toBe(1);
    expect(await gate.metric('tidegate_retries_total{upstream="api",reason="status_5xx"}')).toBe(0);
    expect(await gate.metric('tidegate_upstream_attempts_total{upstream="api",attempt="1",code="202"}')).toBe(2);
    expect(await gate.metric('tidegate_retry_budget_available_ratio{upstream="api"}')).toBe(1);
  });

  test('gets the result of a last poll and a Retry-After when its wait ends', async () => {
    const { api, gate } = await start(say([202, ['X-Job', 'j']]));
    const answer = await send(gate.url, '/', wait(2));
    expect(answer.status).toBe(202);
    expect(answer.header('x-job')).toBe('j');
    expect(answer.body.toString()).toBe(`answer ${api.hits.length}`);
    expect(answer.header('retry-after')).toBe('1');
    expect(answer.header('preference-applied')).toBe('wait=2');
    expect(api.hits.length).toBeGreaterThan(2);
    expect(answer.toHead).toBeGreaterThan(1000);
    expect(gate.requests()).toMatchObject([{ status: 202, outcome: 'forwarded', retryAfter: 1 }]);
  });

  test('for longer than allowed gets a header with the time actually waited', async () => {
    const { gate } = await start(say(202), `${QUICK}, maxWait: 1s`);
    const answer = await send(gate.url, '/', {
      headers: ['Prefer', 'respond-async', 'prefer', 'return=minimal, Wait = "900"'],
    });
    expect(answer.status).toBe(202);
    expect(answer.header('preference-applied')).toBe('wait=1');
  });

  test('can use HEAD', async () => {
    const { api, gate } = await start(say(202, 202, 204));
    const answer = await send(gate.url, '/', { ...wait(30), method: 'HEAD' });
    expect(answer.status).toBe(204);
    expect(api.hits.map(({ method }) => method)).toEqual(['HEAD', 'HEAD', 'HEAD']);
  });

  test('for a missing resource waits on 404 where the route says so', async () => {
    const { gate } = await start(say(404, 404, 200), `${QUICK}, notReady: [404]`);
    expect((await send(gate.url, '/', wait(30))).status).toBe(200);
  });

  test('keeps its connection alive', async () => {
    const { api, gate } = await start(say(202, 200, 202, 200));
    const agent = keepAlive();
    for (let i = 0; i < 2; i += 1) expect((await send(gate.url, '/', { ...wait(30), agent })).status).toBe(200);
    expect(api.hits).toHaveLength(4);
    expect(api.connections()).toBe(1);
  });

  test('gets any other error at once, without another poll', async () => {
    const { api, gate } = await start(say(202, 410));
    const answer = await send(gate.url, '/', wait(30));
    expect([answer.status, answer.body.toString()]).toEqual([410, 'answer 2']);
    expect(api.hits).toHaveLength(2);
    expect(await gate.metric(polls('failed'))).toBe(1);
  });

  test('gets no error in the middle: the route’s retries handle and count it', async () => {
    const { gate } = await start(say(202, 503, 202, 503, 503, 200));
    const answer = await send(gate.url, '/', wait(30));
    expect(answer.status).toBe(200);
    expect(answer.header('tidegate-polls')).toBe('3');
    expect(answer.header('tidegate-attempts')).toBe('6');
    expect(gate.requests()).toMatchObject([{ outcome: 'recovered', polls: 3, attempts: 6 }]);
    expect(await gate.metric('tidegate_retries_total{upstream="api",reason="status_5xx"}')).toBe(3);
    expect(await gate.metric(polls('not_ready'))).toBe(1);
  });

  test('gets the error when the retries of that poll are exhausted', async () => {
    const { api, gate } = await start(say(202, 202, 503), QUICK, ', retry: {attempts: 2}');
    const answer = await send(gate.url, '/', wait(30));
    expect([answer.status, api.hits.length]).toEqual([503, 4]);
    expect(await gate.metric(polls('failed'))).toBe(1);
  });

  test('gets an error when the connection breaks in the middle', async () => {
    const { gate } = await start(
      (n, response) => {
        if (n === 1) response.writeHead(202).end();
        else response.destroy();
      },
      QUICK,
      ', retry: {attempts: 2}',
    );
    const answer = await send(gate.url, '/', wait(30));
    expect(answer.status).toBe(502);
    expect(answer.json()).toMatchObject({ reason: 'reset' });
  });

  test('is not polled for before the upstream’s Retry-After, and gets that if its wait ends sooner', async () => {
    const { api, gate } = await start(say([202, ['Retry-After', '1']], 200));
    expect((await send(gate.url, '/', wait(30))).status).toBe(200);
    expect(gaps(api)[0]).toBeGreaterThanOrEqual(1000);

    const later = await start(say([202, ['Retry-After', '90']]));
    const answer = await send(later.gate.url, '/', wait(50));
    expect([answer.status, answer.header('retry-after')]).toEqual([202, '90']);
    expect(answer.toHead).toBeLessThan(25_000); // at once, not after its wait
    expect(later.api.hits).toHaveLength(1);
  });
});

describe('over HTTP/2', () => {
  test('returns the response once it is ready, and stops when the client disconnects', async () => {
    const certificates = makeCertificates();
    onTestFinished(() => certificates.remove());
    certificates.issue('server', '-addext', 'subjectAltName=IP:127.0.0.1');
    const [cert, key] = [certificates.path('server.crt'), certificates.path('server.key')];
    const listener = `listen: {address: 127.0.0.1:0, tls: {cert: ${cert}, key: ${key}}, http2: true}`;
    const { api, gate } = await start(say(202, 202, 200, 202), QUICK, '', listener);
    const session = await openHttp2(gate.url, certificates.read('ca.crt'));
    const answer = await sendHttp2(session, '/', { prefer: ['respond-async', 'wait=30'] });
    expect(answer.headers).toMatchObject({ ':status': 200, 'preference-applied': 'wait=30', 'tidegate-polls': '3' });
    const stream = session.request({ ':path': '/', prefer: 'wait=30' });
    stream.on('error', () => undefined);
    await eventually(
      () => api.hits,
      ({ length }) => length >= 5,
    );
    stream.close(constants.NGHTTP2_CANCEL);
    await eventually(
      () => gate.requests(),
      ({ length }) => length === 2,
    );
    expect(gate.requests()[1]).toMatchObject({ outcome: 'client_gone' });
    expect(await gate.metric(waiting)).toBe(0);
  });
});

describe('polling stops', () => {
  test('when its client disconnects: no further poll is sent', async () => {
    const { api, gate } = await start(say(202));
    await askAndLeave(gate.url, api, 3);
    await eventually(
      () => gate.requests(),
      ({ length }) => length === 1,
    );
    const { length } = api.hits;
    expect(await gate.metric(waiting)).toBe(0);
    await pause(600);
    expect(api.hits).toHaveLength(length);
    expect(gate.requests()).toMatchObject([{ outcome: 'client_gone', status: 0 }]);
  });

  test('when its client disconnects during a poll: the poll is aborted', async () => {
    let closed = 0;
    const { api, gate } = await start((n, response) => {
      if (n === 1) return void response.writeHead(202).end();
      response.on('close', () => {
        closed += 1;
      });
    });
    await askAndLeave(gate.url, api, 2);
    await eventually(
      () => closed,
      (count) => count === 1,
    );
    await eventually(
      () => gate.metric(polls('client_gone')),
      (count) => count === 1,
    );
    expect(gate.requests()).toMatchObject([{ outcome: 'client_gone', attempts: 2, polls: 2 }]);
  });

  test('when the proxy drains: after one last poll, whose response is forwarded', async () => {
    const { api, gate } = await start(
      say(202, [202, ['X-Last', 'yes']]),
      'backOff: {strategy: fixed, baseInterval: 20s}',
      '',
      'drain: {delay: 0, timeout: 25s}',
    );
    const answered = send(gate.url, '/', wait(60));
    await eventually(
      () => gate.metric(waiting),
      (count) => count === 1,
    );
    const since = performance.now();
    const drained = gate.drain();
    const answer = await answered;
    await drained;
    expect(performance.now() - since).toBeLessThan(10_000);
    expect([answer.status, answer.header('x-last'), answer.header('retry-after')]).toEqual([202, 'yes', '20']);
    expect(api.hits).toHaveLength(2);
  });

  test('when the proxy drains, without another poll where the upstream’s Retry-After is later', async () => {
    const { api, gate } = await start(say([202, ['Retry-After', '30']]), QUICK, '', 'drain: {delay: 0, timeout: 25s}');
    const answered = send(gate.url, '/', wait(60));
    await eventually(
      () => gate.metric(waiting),
      (count) => count === 1,
    );
    const drained = gate.drain();
    const answer = await answered;
    await drained;
    expect([answer.status, answer.json()['reason']]).toEqual([503, 'draining']);
    expect(Number(answer.header('retry-after'))).toBeGreaterThan(15);
    expect(api.hits).toHaveLength(1);
  });
});

test('a request that is never sent twice is not polled for, and its response is forwarded unchanged', async () => {
  const { api, gate } = await start(say(202, 200), QUICK, ', retry: {neverPaths: [{path: /v1/reports, method: GET}]}');
  const answer = await send(gate.url, '/v1/reports', wait(5));
  expect([answer.status, answer.header('tidegate-polls'), answer.header('preference-applied')]).toEqual([
    202,
    undefined,
    undefined,
  ]);
  expect(answer.header('retry-after')).toBeUndefined();
  expect(api.hits).toHaveLength(1);
  expect((await send(gate.url, '/v1/other', wait(5))).header('preference-applied')).toBe('wait=5');
});

describe('polls are requests', () => {
  test('and are paced by the limit', async () => {
    const { api, gate } = await start(
      say(202),
      'backOff: {strategy: fixed, baseInterval: 100ms}',
      ', rateLimit: {initialRate: 5/s, maxRate: 5/s}, queue: {maxWait: 10s}',
    );
    const answers = await Promise.all([1, 2, 3].map((n) => send(gate.url, `/${n}`, wait(2, 'X-Api-Key', `c${n}`))));
    for (const { status } of answers) expect([202, 429]).toContain(status);
    const [first, last] = [api.hits[0]?.at ?? 0, api.hits.at(-1)?.at ?? 0];
    // Unpaced, three clients would have polled ten times a second each.
    expect(api.hits.length).toBeGreaterThan(3);
    expect(api.hits.length).toBeLessThanOrEqual(2 + (5 * (last - first)) / 1000 + 5);
  });

  test('bounds the number of waiting clients: others get their response at once', async () => {
    const { gate } = await start(say(202), `${QUICK}, maxWaiting: 1`);
    const first = send(gate.url, '/', wait(3));
    await eventually(
      () => gate.metric(waiting),
      (count) => count === 1,
    );
    const second = await send(gate.url, '/other', wait(30));
    expect([second.status, second.header('retry-after'), second.header('tidegate-polls')]).toEqual([
      202,
      '1',
      undefined,
    ]);
    expect(second.header('preference-applied')).toBeUndefined();
    expect((await first).header('preference-applied')).toBe('wait=3');
    expect(await gate.metric('tidegate_bound_reached_total{bound="polls_waiting"}')).toBe(1);
  });

  test('leaves a ninth of the places to clients at other addresses', async () => {
    const { url } = await startHttpUpstream(say(202));
    const gate = await startTidegate(`
upstreams: {api: {url: "${url}"}}
routes: [{path: /, upstream: api, poll: {backOff: {strategy: fixed, baseInterval: 10s}, maxWaiting: 9}}]
clients: {key: [header:x-api-key], trustedProxies: [127.0.0.1]}
`);
    const leaving = new AbortController();
    const askFrom = (address: string, key: string) => ({
      ...wait(30, 'X-Forwarded-For', address, 'X-Api-Key', key),
      signal: leaving.signal,
    });
    const left = Array.from({ length: 8 }, (_, n) => send(gate.url, `/${n}`, askFrom('203.0.113.1', `key-${n}`)));
    await eventually(
      () => gate.metric(waiting),
      (count) => count === 8,
    );
    const ninth = await send(gate.url, '/8', askFrom('203.0.113.1', 'key-8'));
    expect([ninth.status, ninth.header('preference-applied')]).toEqual([202, undefined]);
    left.push(send(gate.url, '/9', askFrom('203.0.113.2', 'key-9')));
    await eventually(
      () => gate.metric(waiting),
      (count) => count === 9,
    );
    leaving.abort();
    for (const { status } of await Promise.allSettled(left)) expect(status).toBe('rejected');
    await eventually(
      () => gate.metric(waiting),
      (count) => count === 0,
    );
  });

  test('polls only GET and HEAD, and nothing in observe mode', async () => {
    const { api, gate } = await start(say(202));
    const posted = await send(gate.url, '/', { ...wait(30), method: 'POST', body: 'x' });
    expect([posted.status, posted.header('retry-after'), posted.header('preference-applied')]).toEqual([
      202,
      undefined,
      undefined,
    ]);
    expect(api.hits).toHaveLength(1);
    const observing = await start(say(202), QUICK, '', 'mode: observe');
    const seen = await send(observing.gate.url, '/', wait(30));
    expect([seen.status, seen.header('retry-after'), seen.header('preference-applied')]).toEqual([
      202,
      undefined,
      undefined,
    ]);
    expect(observing.api.hits).toHaveLength(1);
  });

  test('and appear as polls in metrics, log and explanations', async () => {
    const { gate } = await start(say(202, 202, 200));
    const answer = await send(gate.url, '/', wait(30));
    const id = answer.header('tidegate-request-id') ?? '';
    const explanation = (await (
      await fetch(`${gate.adminUrl}/explain/${id}`, { headers: { accept: 'application/json' } })
    ).json()) as {
      verdict: string;
      steps: { what: string; text: string }[];
    };
    expect(explanation.steps.map(({ what }) => what).join(' ')).toBe(
      'arrived decided sent answered poll waited decided sent answered poll waited decided sent answered verdict',
    );
    expect(explanation.steps.find(({ what }) => what === 'poll')?.text).toBe(
      'next poll in 200 ms (not ready): the backoff of polls',
    );
    expect(explanation.verdict).toBe('forwarded: the upstream’s 200, at poll 3');
  });
});

describe('a client that does not wait', () => {
  const GROWING = 'backOff: {strategy: exponential, baseInterval: 2s, multiplier: 2, maxInterval: 60s}';
  const retryAfterOf = async (url: string, target: string, key = 'a') =>
    (await send(url, target, { headers: ['X-Api-Key', key] })).header('retry-after');

  test('gets a growing Retry-After, separately for each client and resource', async () => {
    const { api, gate } = await start(say([202, ['X-Job', 'j']]), GROWING);
    for (const seconds of ['2', '4', '8']) expect(await retryAfterOf(gate.url, '/a')).toBe(seconds);
    expect(await retryAfterOf(gate.url, '/b')).toBe('2');
    expect(await retryAfterOf(gate.url, '/a?page=2')).toBe('2');
    expect(await retryAfterOf(gate.url, '/a', 'other')).toBe('2');
    expect(await retryAfterOf(gate.url, '/a')).toBe('16');
    expect(api.hits).toHaveLength(7); // early or not, each is forwarded
    expect(await gate.metric('tidegate_polls_slowed_total{route="/"}')).toBe(7);
  });

  test('gets the shortest Retry-After again when the response changes or was ready', async () => {
    const { gate } = await start(
      say(
        [202, ['ETag', '"1"']],
        [202, ['ETag', '"1"']],
        [202, ['ETag', '"2"']],
        [202, ['ETag', '"2"']],
        200,
        [202, ['ETag', '"2"']],
        [202, ['ETag', '"2"', 'Last-Modified', 'Sun, 22 Nov 2026 12:00:00 GMT']],
      ),
      GROWING,
    );
    const all: (string | undefined)[] = [];
    for (let i = 0; i < 7; i += 1) all.push(await retryAfterOf(gate.url, '/a'));
    expect(all).toEqual(['2', '4', '2', '4', undefined, '2', '2']);
  });

  test('gets the upstream’s own Retry-After where that is longer', async () => {
    withFixedRandom();
    const { gate } = await start(say([202, ['retry-after', '3', 'X-Job', 'j']]), GROWING);
    const all: (string | undefined)[] = [];
    for (let i = 0; i < 3; i += 1) all.push(await retryAfterOf(gate.url, '/a'));
    expect(all).toEqual(['3', '4', '8']);
    const answer = await send(gate.url, '/a', { headers: ['X-Api-Key', 'a'] });
    expect(answer.headers.filter((name) => name.toLowerCase() === 'retry-after')).toHaveLength(1);
    expect(answer.header('x-job')).toBe('j');
    expect(answer.body.toString()).toBe('answer 4');
  });

  test('gets the upstream’s own Retry-After where that is longer, however long', async () => {
    const { gate } = await start(
      say([202, ['Retry-After', '3600']]),
      'backOff: {strategy: exponential, baseInterval: 10m, maxInterval: 20m}',
    );
    expect(await retryAfterOf(gate.url, '/a')).toBe('3600');
  });
});
