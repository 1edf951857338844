import { describe, expect, test } from 'vitest';
import { refusingUrl, startHttpUpstream } from '../support/http-upstream.ts';
import { courseOf, explained, stepOf } from '../support/explained.ts';
import { openRaw } from '../support/raw.ts';
import { send, sendAndLeave } from '../support/send.ts';
import { eventually, startTidegate, startUpstream } from '../support/tidegate.ts';

const ID = 'tidegate-request-id';

describe('the whole story of a request', () => {
  test('that passed at once and was answered', async () => {
    const upstream = await startUpstream();
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    const before = Date.now();
    const answer = await send(gate.url, '/things?token=1', {});
    const story = await explained(gate, answer.header(ID));
    expect(courseOf(story)).toEqual(['arrived', 'decided passed', 'sent 1', 'answered 200', 'verdict 200']);
    expect(story).toMatchObject({
      id: answer.header(ID),
      client: { identifiedBy: 'ip' },
      route: '/',
      upstream: 'api',
      method: 'GET',
      path: '/things',
      outcome: 'forwarded',
      status: 200,
      traceId: null,
      verdict: 'forwarded: the upstream’s 200',
    });
    expect(story.client.key).toBe(gate.requests()[0]?.['client']);
    expect(Date.parse(story.at)).toBeGreaterThanOrEqual(before - 100);
    expect(Date.parse(story.at)).toBeLessThanOrEqual(Date.now());
    expect(stepOf(story, 'sent')).toMatchObject({ attempt: 1, endpoint: new URL(upstream.url).host });
  });

  test('that was refused: with its share, its turn, its patience, and when it may come back', async () => {
    const upstream = await startHttpUpstream((_n, response) => response.end());
    const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", rateLimit: {initialRate: 2/s, maxRate: 2/s}, queue: {maxWait: 100ms}}}
clients: {key: ["header:x-api-key"]}
`);
    const ask = () => send(gate.url, '/', { headers: ['X-Api-Key', 'k'] });
    await ask();
    const refused = await ask();
    expect(refused.status).toBe(429);
    const story = await explained(gate, refused.header(ID));
    expect(courseOf(story)).toEqual(['arrived', 'decided refused', 'verdict 429']);
    const decided = stepOf(story, 'decided');
    expect(decided).toMatchObject({
      decision: 'refused',
      reason: 'over_share',
      ratePerSecond: 2,
      sharePerSecond: 2,
      patienceSeconds: 0.1,
      allowance: 1,
      queued: 0,
      heldForSeconds: 0,
    });
    expect(decided['estimateSeconds']).toBeGreaterThan(0.1);
    expect(decided['estimateSeconds']).toBeLessThanOrEqual(0.5);
    expect(decided['text']).toMatch(
      /^refused \(over_share\): its turn would have been in \d+ ms and it may wait 100 ms/,
    );
    expect(story.client.identifiedBy).toBe('header:x-api-key');
    const back = refused.header('retry-after');
    expect(story.verdict).toMatch(
      new RegExp(`^refused with 429 \\(over_share\\): .*; told to come back in ${back} s, because its turn would have`),
    );
  });

  test('that waited for its turn', async () => {
    const upstream = await startHttpUpstream((_n, response) => response.end());
    const gate = await startTidegate(
      `upstreams: {api: {url: "${upstream.url}", rateLimit: {initialRate: 5/s, maxRate: 5/s}, queue: {maxWait: 5s}}}`,
    );
    await send(gate.url, '/');
    const story = await explained(gate, (await send(gate.url, '/')).header(ID));
    expect(courseOf(story)).toEqual(['arrived', 'decided queued', 'queued', 'sent 1', 'answered 200', 'verdict 200']);
    expect(stepOf(story, 'decided')).toMatchObject({
      ratePerSecond: 5,
      queued: 1,
      queuedOfClient: 1,
      patienceSeconds: 5,
    });
    const waited = Number(stepOf(story, 'queued')['waitedSeconds']);
    expect(waited).toBeGreaterThan(0.05);
    expect(stepOf(story, 'verdict')['queuedSeconds']).toBeCloseTo(waited, 3);
    expect(Number(stepOf(story, 'sent')['at'])).toBeGreaterThanOrEqual(waited);
  });

  test('that waited for longer than it may', async () => {
    const upstream = await startHttpUpstream((_n, response) => void setTimeout(() => response.end(), 1500));
    const gate = await startTidegate(
      `upstreams: {api: {url: "${upstream.url}", connections: 1, queue: {maxWait: 300ms}}}`,
    );
    const first = send(gate.url, '/');
    await eventually(
      () => upstream.hits.length,
      (hits) => hits === 1,
    );
    const late = await send(gate.url, '/');
    expect(late.status).toBe(429);
    const story = await explained(gate, late.header(ID));
    expect(courseOf(story)).toEqual(['arrived', 'decided queued', 'queued', 'verdict 429']);
    expect(stepOf(story, 'decided')['text']).toContain('all connections to the upstream are in use');
    expect(stepOf(story, 'queued')['reason']).toBe('queue_timeout');
    expect(story.verdict).toMatch(/^refused with 429 \(queue_timeout\): .*; told to come back in \d+ s/);
    await first;
  });

  test('that was sent again: after its back-off, then after the upstream’s hint', async () => {
    const upstream = await startUpstream();
    const gate = await startTidegate(
      `upstreams: {api: {url: "${upstream.url}", retry: {backOff: {strategy: full-jitter, baseInterval: 80ms}}}}`,
    );
    const script = '503, 429; retry-after=1, 200';
    const answer = await send(gate.url, '/charges', {
      method: 'POST',
      headers: ['Idempotency-Key', 'k', 'X-Practice-Id', 'k', 'X-Practice-Script', script],
      body: 'amount=1',
    });
    const story = await explained(gate, answer.header(ID));
    const course = courseOf(story).filter((step) => !step.startsWith('decided') && step !== 'queued');
    expect(course).toEqual([
      'arrived',
      'sent 1',
      'answered 503',
      'retry backoff',
      'waited',
      'sent 2',
      'answered 429',
      'retry hint',
      'waited',
      'sent 3',
      'answered 200',
      'verdict 200',
    ]);
    const [backOff, hint] = story.steps.filter(({ what }) => what === 'retry');
    expect(backOff).toMatchObject({
      attempt: 2,
      reason: 'status_5xx',
      strategy: 'full-jitter',
      leastSeconds: 0,
      mostSeconds: 0.08,
    });
    expect(backOff?.['delaySeconds']).toBeLessThanOrEqual(0.08);
    expect(hint).toMatchObject({ attempt: 3, reason: 'status_429', askedSeconds: 1 });
    expect(hint?.['delaySeconds']).toBeGreaterThanOrEqual(1);
    expect(hint?.text).toMatch(/the upstream asked for 1 s, chance added/);
    expect(story.steps.find((step) => step['status'] === 429)).toMatchObject({ hints: { retryAfterSeconds: 1 } });
    const waits = story.steps.filter(({ what }) => what === 'waited').map((step) => Number(step['waitedSeconds']));
    expect(waits[0]).toBeGreaterThanOrEqual(Number(backOff?.['delaySeconds']) - 0.001);
    expect(waits[1]).toBeGreaterThanOrEqual(1);
    expect(story.verdict).toBe('recovered: the upstream’s 200, at attempt 3');
    const times = story.steps.map(({ at }) => at);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
  });

  test('that may have taken effect, and why it was not sent again', async () => {
    const upstream = await startHttpUpstream((_n, response) => response.destroy());
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    const answer = await send(gate.url, '/pay', { method: 'POST', body: 'amount=1' });
    const story = await explained(gate, answer.header(ID));
    expect(courseOf(story)).toEqual(['arrived', 'decided passed', 'sent 1', 'answered reset', 'verdict 504']);
    expect(stepOf(story, 'answered')).toMatchObject({ error: 'reset', sent: true });
    expect(stepOf(story, 'answered')['text']).toContain('it may have reached the upstream');
    expect(story.verdict).toMatch(
      /^unknown, told as 504: it may have taken effect\. .*; not sent again: a write that is not known to be safe/,
    );
  });

  test('whose upstream cannot be reached', async () => {
    const gate = await startTidegate(
      `upstreams: {api: {url: "${await refusingUrl()}", retry: {attempts: 2, backOff: {strategy: fixed, baseInterval: 5ms}}}}`,
    );
    const story = await explained(gate, (await send(gate.url, '/')).header(ID));
    expect(courseOf(story)).toEqual([
      'arrived',
      'decided passed',
      'sent 1',
      'answered connect',
      'retry backoff',
      'waited',
      'decided passed',
      'sent 2',
      'answered connect',
      'verdict 502',
    ]);
    expect(stepOf(story, 'answered')).toMatchObject({ cause: 'ECONNREFUSED', sent: false });
    expect(story.verdict).toMatch(
      /^failed, told as 502 .*; not sent again after 2 attempts: as many attempts were made/,
    );
  });

  test('whose client went away', async () => {
    const upstream = await startUpstream();
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    await sendAndLeave(
      gate.url,
      '/',
      { headers: ['X-Practice-Script', 'hang'] },
      () => upstream.stats().inFlight === 1,
    );
    const [line] = await eventually(gate.requests, ({ length }) => length === 1);
    const story = await explained(gate, String(line?.['id']));
    expect(courseOf(story)).toEqual([
      'arrived',
      'decided passed',
      'sent 1',
      'gone attempt',
      'answered aborted',
      'verdict 0',
    ]);
    expect(story).toMatchObject({
      outcome: 'client_gone',
      verdict: 'the client went away while the upstream was awaited',
    });
  });

  test('that was given up for what it is: nobody is said to have left', async () => {
    const upstream = await startUpstream();
    const gate = await startTidegate(`limits: {bodyIdle: 200ms}\nupstreams: {api: {url: "${upstream.url}"}}`);
    const raw = await openRaw(gate.url);
    raw.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf');
    const text = await raw.until('\r\n\r\n');
    const story = await explained(gate, /^tidegate-request-id: (\S+)\r$/im.exec(text)?.[1]);
    expect(courseOf(story)).toEqual(['arrived', 'gone body', 'verdict 408']);
    expect(stepOf(story, 'gone')['text']).toBe('the request was given up');
    expect(story.verdict).toBe('refused with 408 (body_idle): The body paused for too long');
  });

  test('of a client whom the upstream told to wait', async () => {
    const upstream = await startUpstream();
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}}}`);
    await send(gate.url, '/', { headers: ['X-Practice-Script', '429; retry-after=60'] });
    const story = await explained(gate, (await send(gate.url, '/')).header(ID));
    expect(courseOf(story)).toEqual(['arrived', 'decided refused', 'verdict 429']);
    const held = Number(stepOf(story, 'decided')['heldForSeconds']);
    expect(held).toBeGreaterThan(50);
    expect(held).toBeLessThanOrEqual(60);
    expect(story.verdict).toContain('because the upstream asked this client to stay away for');
  });

  test('that never became one of an upstream', async () => {
    const upstream = await startUpstream();
    const gate = await startTidegate(
      `upstreams: {api: {url: "${upstream.url}"}}\nroutes: [{path: /v1, upstream: api}]\n`,
    );
    const story = await explained(gate, (await send(gate.url, '/v2')).header(ID));
    expect(courseOf(story)).toEqual(['arrived', 'verdict 404']);
    expect(story).toMatchObject({ client: { key: '', identifiedBy: null }, upstream: '' });
    expect(story.verdict).toBe('refused with 404 (no_route): No route leads there');
  });

  test('that only would have been refused, where we observe', async () => {
    const upstream = await startHttpUpstream((_n, response) => response.end());
    const gate = await startTidegate(
      `mode: observe\nupstreams: {api: {url: "${upstream.url}", rateLimit: {initialRate: 1/s, maxRate: 1/s}, queue: {maxWait: 0}}}`,
    );
    await send(gate.url, '/');
    const answer = await send(gate.url, '/');
    expect(answer.status).toBe(200);
    const story = await explained(gate, answer.header(ID));
    expect(courseOf(story)).toEqual(['arrived', 'decided refused', 'sent 1', 'answered 200', 'verdict 200']);
    expect(stepOf(story, 'decided')).toMatchObject({ observed: true, reason: 'over_share' });
    expect(story.verdict).toContain('observed: it would have been refused (over_share)');
  });
});

test('no explanation has a secret in it', async () => {
  const upstream = await startUpstream();
  const secret = 'S3CR3T';
  const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", retry: {attempts: 2, backOff: {strategy: fixed, baseInterval: 1ms}}}}
clients: {key: ["path:2", "header:x-api-key"]}
`);
  const headers = [
    ...['Authorization', `Bearer ${secret}`, 'Cookie', `session=${secret}`, 'X-Api-Key', secret],
    ...['Idempotency-Key', secret, 'Tracestate', `a=${secret}`],
  ];
  const scripts = [
    '200; header=Set-Cookie:S3CR3T',
    '503; header=X-Secret:S3CR3T',
    '429; retry-after=1',
    'reset',
    '404',
  ];
  for (const script of scripts) {
    await send(gate.url, `/of/${secret}/pay?token=${secret}`, {
      method: 'POST',
      headers: [...headers, 'X-Practice-Script', script],
      body: secret,
    }).catch(() => undefined);
  }
  const lines = await eventually(gate.requests, ({ length }) => length === scripts.length);
  for (const { id } of lines) {
    const told = JSON.stringify(await explained(gate, String(id)));
    expect(told).not.toContain(secret);
    expect(told).toContain('/of/*/pay');
    const text = await fetch(`${gate.adminUrl}/explain/${String(id)}`, { headers: { accept: 'text/plain' } });
    expect(await text.text()).not.toContain(secret);
  }
  expect(JSON.stringify(gate.stories?.recent())).not.toContain(secret);
});

describe('the admin port', () => {
  test('tells it as text where that is asked for', async () => {
    const upstream = await startUpstream();
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    const id = (await send(gate.url, '/things')).header(ID);
    await explained(gate, id);
    const answer = await fetch(`${gate.adminUrl}/explain/${id}`, { headers: { accept: 'text/plain' } });
    expect(answer.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    const [first, second] = (await answer.text()).split('\n');
    expect(first).toBe(`${id}: GET /things → 200 (forwarded)`);
    expect(second).toMatch(/^arrived \d{4}-.*Z, route \/, upstream api$/);
  });

  test('says what may be the matter with an id that it does not know', async () => {
    const upstream = await startUpstream();
    const gate = await startTidegate(`telemetry: 127.0.0.1:0\nupstreams: {api: {url: "${upstream.url}"}}`);
    const answer = await fetch(`${gate.adminUrl}/explain/none-1`);
    expect(answer.status).toBe(404);
    expect(answer.headers.get('content-type')).toContain('application/problem+json');
    expect(await answer.json()).toMatchObject({ detail: expect.stringMatching(/too long ago|not sampled/) as unknown });
    // Nor is it for those who may only see metrics.
    const id = (await send(gate.url, '/')).header(ID);
    await explained(gate, id);
    expect((await fetch(`${gate.telemetryUrl}/explain/${id}`)).status).toBe(404);
  });
});
