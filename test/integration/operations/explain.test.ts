import { describe, expect, test } from 'vitest';
import { refusingUrl, startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { summarizeSteps, fetchExplanation, findStep } from '../../support/admin/explanations.ts';
import { openRaw } from '../../support/clients/raw-socket.ts';
import { send, sendAndLeave } from '../../support/clients/send.ts';
import { eventually, startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';

const ID = 'tidegate-request-id';

describe('the explanation of a request', () => {
  test('that was admitted at once and answered', async () => {
    const upstream = await startUpstream();
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    const before = Date.now();
    const answer = await send(gate.url, '/things?token=1', {});
    const explanation = await fetchExplanation(gate, answer.header(ID));
    expect(summarizeSteps(explanation)).toEqual(['arrived', 'decided passed', 'sent 1', 'answered 200', 'verdict 200']);
    expect(explanation).toMatchObject({
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
    expect(explanation.client.key).toBe(gate.requests()[0]?.['client']);
    expect(Date.parse(explanation.at)).toBeGreaterThanOrEqual(before - 100);
    expect(Date.parse(explanation.at)).toBeLessThanOrEqual(Date.now());
    expect(findStep(explanation, 'sent')).toMatchObject({ attempt: 1, endpoint: new URL(upstream.url).host });
  });

  test('that was rejected: its share, position, maximum wait and time to retry', async () => {
    const upstream = await startHttpUpstream((_n, response) => response.end());
    const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", rateLimit: {initialRate: 2/s, maxRate: 2/s}, queue: {maxWait: 100ms}}}
clients: {key: ["header:x-api-key"]}
`);
    const ask = () => send(gate.url, '/', { headers: ['X-Api-Key', 'k'] });
    await ask();
    const refused = await ask();
    expect(refused.status).toBe(429);
    const explanation = await fetchExplanation(gate, refused.header(ID));
    expect(summarizeSteps(explanation)).toEqual(['arrived', 'decided refused', 'verdict 429']);
    const decided = findStep(explanation, 'decided');
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
      /^refused \(over_share\): it would have waited \d+ ms, longer than the maximum of 100 ms/,
    );
    expect(explanation.client.identifiedBy).toBe('header:x-api-key');
    const back = refused.header('retry-after');
    expect(explanation.verdict).toMatch(
      new RegExp(`^refused with 429 \\(over_share\\): .*; Retry-After: ${back} s, because it would have`),
    );
  });

  test('that was queued', async () => {
    const upstream = await startHttpUpstream((_n, response) => response.end());
    const gate = await startTidegate(
      `upstreams: {api: {url: "${upstream.url}", rateLimit: {initialRate: 5/s, maxRate: 5/s}, queue: {maxWait: 5s}}}`,
    );
    await send(gate.url, '/');
    const explanation = await fetchExplanation(gate, (await send(gate.url, '/')).header(ID));
    expect(summarizeSteps(explanation)).toEqual([
      'arrived',
      'decided queued',
      'queued',
      'sent 1',
      'answered 200',
      'verdict 200',
    ]);
    expect(findStep(explanation, 'decided')).toMatchObject({
      ratePerSecond: 5,
      queued: 1,
      queuedOfClient: 1,
      patienceSeconds: 5,
    });
    const waited = Number(findStep(explanation, 'queued')['waitedSeconds']);
    expect(waited).toBeGreaterThan(0.05);
    expect(findStep(explanation, 'verdict')['queuedSeconds']).toBeCloseTo(waited, 3);
    expect(Number(findStep(explanation, 'sent')['at'])).toBeGreaterThanOrEqual(waited);
  });

  test('that exceeded its maximum wait', async () => {
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
    const explanation = await fetchExplanation(gate, late.header(ID));
    expect(summarizeSteps(explanation)).toEqual(['arrived', 'decided queued', 'queued', 'verdict 429']);
    expect(findStep(explanation, 'decided')['text']).toContain('all connections to the upstream are in use');
    expect(findStep(explanation, 'queued')['reason']).toBe('queue_timeout');
    expect(explanation.verdict).toMatch(/^refused with 429 \(queue_timeout\): .*; Retry-After: \d+ s/);
    await first;
  });

  test('that was retried: after its backoff, then after the upstream’s hint', async () => {
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
    const explanation = await fetchExplanation(gate, answer.header(ID));
    const course = summarizeSteps(explanation).filter((step) => !step.startsWith('decided') && step !== 'queued');
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
    const [backOff, hint] = explanation.steps.filter(({ what }) => what === 'retry');
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
    expect(hint?.text).toMatch(/the upstream asked for 1 s, jitter added/);
    expect(explanation.steps.find((step) => step['status'] === 429)).toMatchObject({ hints: { retryAfterSeconds: 1 } });
    const waits = explanation.steps
      .filter(({ what }) => what === 'waited')
      .map((step) => Number(step['waitedSeconds']));
    expect(waits[0]).toBeGreaterThanOrEqual(Number(backOff?.['delaySeconds']) - 0.001);
    expect(waits[1]).toBeGreaterThanOrEqual(1);
    expect(explanation.verdict).toBe('recovered: the upstream’s 200, at attempt 3');
    const times = explanation.steps.map(({ at }) => at);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
  });

  test('that may have taken effect, and why it was not retried', async () => {
    const upstream = await startHttpUpstream((_n, response) => response.destroy());
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    const answer = await send(gate.url, '/pay', { method: 'POST', body: 'amount=1' });
    const explanation = await fetchExplanation(gate, answer.header(ID));
    expect(summarizeSteps(explanation)).toEqual([
      'arrived',
      'decided passed',
      'sent 1',
      'answered reset',
      'verdict 504',
    ]);
    expect(findStep(explanation, 'answered')).toMatchObject({ error: 'reset', sent: true });
    expect(findStep(explanation, 'answered')['text']).toContain('it may have reached the upstream');
    expect(explanation.verdict).toMatch(
      /^unknown, answered with 504: the write may have taken effect\. .*; not retried: a write that may not be safe/,
    );
  });

  test('whose reused connection was reset: it says what is known, and no more', async () => {
    const upstream = await startHttpUpstream((n, response) => {
      if (n === 2) response.socket?.resetAndDestroy();
      else response.end();
    });
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    await send(gate.url, '/');
    const answer = await send(gate.url, '/things');
    expect(answer.status).toBe(200);
    const explanation = await fetchExplanation(gate, answer.header(ID));
    const [reset] = explanation.steps.filter(({ what }) => what === 'answered');
    expect(reset).toMatchObject({ error: 'reset', cause: 'ECONNRESET', sent: true });
    expect(reset?.text).toMatch(
      /: reset, ECONNRESET; the reused connection closed before any part of a response; it may have reached the upstream$/,
    );
    expect(findStep(explanation, 'retry')['text']).toBe('retry at once (reset), on a new connection');
  });

  test('whose upstream cannot be reached', async () => {
    const gate = await startTidegate(
      `upstreams: {api: {url: "${await refusingUrl()}", retry: {attempts: 2, backOff: {strategy: fixed, baseInterval: 5ms}}}}`,
    );
    const explanation = await fetchExplanation(gate, (await send(gate.url, '/')).header(ID));
    expect(summarizeSteps(explanation)).toEqual([
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
    expect(findStep(explanation, 'answered')).toMatchObject({ cause: 'ECONNREFUSED', sent: false });
    expect(explanation.verdict).toMatch(
      /^failed, answered with 502 .*; not retried after 2 attempts: the maximum number of attempts was made/,
    );
  });

  test('whose client disconnected', async () => {
    const upstream = await startUpstream();
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    await sendAndLeave(
      gate.url,
      '/',
      { headers: ['X-Practice-Script', 'hang'] },
      () => upstream.stats().inFlight === 1,
    );
    const [line] = await eventually(gate.requests, ({ length }) => length === 1);
    const explanation = await fetchExplanation(gate, String(line?.['id']));
    expect(summarizeSteps(explanation)).toEqual([
      'arrived',
      'decided passed',
      'sent 1',
      'gone attempt',
      'answered aborted',
      'verdict 0',
    ]);
    expect(explanation).toMatchObject({
      outcome: 'client_gone',
      verdict: 'the client disconnected while an attempt was in flight',
    });
  });

  test('that was aborted by the proxy does not say that the client disconnected', async () => {
    const upstream = await startUpstream();
    const gate = await startTidegate(`limits: {bodyIdle: 200ms}\nupstreams: {api: {url: "${upstream.url}"}}`);
    const raw = await openRaw(gate.url);
    raw.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf');
    const text = await raw.until('\r\n\r\n');
    const explanation = await fetchExplanation(gate, /^tidegate-request-id: (\S+)\r$/im.exec(text)?.[1]);
    expect(summarizeSteps(explanation)).toEqual(['arrived', 'gone body', 'verdict 408']);
    expect(findStep(explanation, 'gone')['text']).toBe('the request was aborted');
    expect(explanation.verdict).toBe(
      'refused with 408 (body_idle): The request body paused for too long. Send it without long pauses',
    );
  });

  test('of a client with a Retry-After from the upstream', async () => {
    const upstream = await startUpstream();
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}}}`);
    await send(gate.url, '/', { headers: ['X-Practice-Script', '429; retry-after=60'] });
    const explanation = await fetchExplanation(gate, (await send(gate.url, '/')).header(ID));
    expect(summarizeSteps(explanation)).toEqual(['arrived', 'decided refused', 'verdict 429']);
    const held = Number(findStep(explanation, 'decided')['heldForSeconds']);
    expect(held).toBeGreaterThan(50);
    expect(held).toBeLessThanOrEqual(60);
    expect(explanation.verdict).toContain('because the upstream asked this client to wait');
  });

  test('that never reached an upstream', async () => {
    const upstream = await startUpstream();
    const gate = await startTidegate(
      `upstreams: {api: {url: "${upstream.url}"}}\nroutes: [{path: /v1, upstream: api}]\n`,
    );
    const explanation = await fetchExplanation(gate, (await send(gate.url, '/v2')).header(ID));
    expect(summarizeSteps(explanation)).toEqual(['arrived', 'verdict 404']);
    expect(explanation).toMatchObject({ client: { key: '', identifiedBy: null }, upstream: '' });
    expect(explanation.verdict).toBe(
      'refused with 404 (no_route): No route matches the host, path and method of this request',
    );
  });

  test('that would have been rejected outside observe mode', async () => {
    const upstream = await startHttpUpstream((_n, response) => response.end());
    const gate = await startTidegate(
      `mode: observe\nupstreams: {api: {url: "${upstream.url}", rateLimit: {initialRate: 1/s, maxRate: 1/s}, queue: {maxWait: 0}}}`,
    );
    await send(gate.url, '/');
    const answer = await send(gate.url, '/');
    expect(answer.status).toBe(200);
    const explanation = await fetchExplanation(gate, answer.header(ID));
    expect(summarizeSteps(explanation)).toEqual([
      'arrived',
      'decided refused',
      'sent 1',
      'answered 200',
      'verdict 200',
    ]);
    expect(findStep(explanation, 'decided')).toMatchObject({ observed: true, reason: 'over_share' });
    expect(explanation.verdict).toContain('observe mode: it would have been refused (over_share)');
  });
});

test('contains no secret, for any request', async () => {
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
    const serialized = JSON.stringify(await fetchExplanation(gate, String(id)));
    expect(serialized).not.toContain(secret);
    expect(serialized).toContain('/of/*/pay');
    const text = await fetch(`${gate.adminUrl}/explain/${String(id)}`, { headers: { accept: 'text/plain' } });
    expect(await text.text()).not.toContain(secret);
  }
  expect(JSON.stringify(gate.explanations?.recent())).not.toContain(secret);
});

describe('the admin port', () => {
  test('returns the explanation as text on request', async () => {
    const upstream = await startUpstream();
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    const id = (await send(gate.url, '/things')).header(ID);
    await fetchExplanation(gate, id);
    const answer = await fetch(`${gate.adminUrl}/explain/${id}`, { headers: { accept: 'text/plain' } });
    expect(answer.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    const [first, second] = (await answer.text()).split('\n');
    expect(first).toBe(`${id}: GET /things → 200 (forwarded)`);
    expect(second).toMatch(/^arrived \d{4}-.*Z, route \/, upstream api$/);
  });

  test('lists possible reasons for an unknown id', async () => {
    const upstream = await startUpstream();
    const gate = await startTidegate(`telemetry: 127.0.0.1:0\nupstreams: {api: {url: "${upstream.url}"}}`);
    const answer = await fetch(`${gate.adminUrl}/explain/none-1`);
    expect(answer.status).toBe(404);
    expect(answer.headers.get('content-type')).toContain('application/problem+json');
    expect(await answer.json()).toMatchObject({
      detail: expect.stringMatching(/too old|without being sampled/) as unknown,
    });
    // Nor is it available to those who may only read metrics.
    const id = (await send(gate.url, '/')).header(ID);
    await fetchExplanation(gate, id);
    expect((await fetch(`${gate.telemetryUrl}/explain/${id}`)).status).toBe(404);
  });
});
