import { expect, onTestFinished, test } from 'vitest';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { startWorkers } from '../../support/proxy/workers.ts';
import { refusingUrl, startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

interface Timeline {
  readonly events: readonly { readonly kind: string; readonly upstream: string | null; readonly text: string }[];
}

/** Oldest first, of the kinds about failures and blocks. */
async function timelineOf(adminUrl: string | undefined): Promise<readonly string[]> {
  const { events } = (await (await fetch(`${adminUrl}/api/timeline`)).json()) as Timeline;
  const kinds = new Set(['failing', 'recovered', 'blocked', 'unblocked']);
  return events
    .filter(({ kind }) => kinds.has(kind))
    .map(({ kind, upstream, text }) => `${kind} ${upstream}: ${text}`)
    .toReversed();
}

/** Sends requests of three clients for three paths until the test ends. */
function keepSending(url: string): void {
  let n = 0;
  const timer = setInterval(() => {
    n += 1;
    void send(url, `/${n % 3}`, { headers: ['X-Api-Key', `client-${n % 3}`] }).catch(() => undefined);
  }, 50);
  onTestFinished(() => clearInterval(timer));
}

const CLIENTS = 'clients: {key: [header:x-api-key, ip]}\n';

test('logs and records that an upstream responds to everything with a 500, and that this is over', async () => {
  let status = 500;
  const upstream = await startHttpUpstream((_, response) => response.writeHead(status).end());
  const gate = await startTidegate(`${CLIENTS}upstreams: {pay: {url: "${upstream.url}", retry: {attempts: 1}}}`);
  keepSending(gate.url);
  const lines = () => gate.log().filter(({ msg }) => String(msg).startsWith('upstream '));
  expect(await eventually(lines, ({ length }) => length === 1)).toMatchObject([
    {
      level: 'warn',
      msg: 'upstream failing',
      upstream: 'pay',
      failedShare: 1,
      cause: '500',
      problem: 'responds with 500',
    },
  ]);
  status = 200;
  expect(await eventually(lines, ({ length }) => length === 2)).toMatchObject([
    {},
    { level: 'info', msg: 'upstream recovered', upstream: 'pay', problem: 'responds with 500' },
  ]);
  const events = await timelineOf(gate.adminUrl);
  expect(events[0]).toBe('failing pay: responds with 500 (every attempt fails)');
  expect(events.at(-1)).toMatch(/^recovered pay: attempts succeed again after \d+ s$/);
});

test('names the cause of a block in the log', async () => {
  const gate = await startTidegate(`${CLIENTS}upstreams: {pay: {url: "${await refusingUrl()}", retry: {attempts: 1}}}`);
  keepSending(gate.url);
  const line = await eventually(
    () => gate.log().find(({ blockedCause }) => blockedCause === 'errors'),
    (found) => found !== undefined,
  );
  expect(line).toMatchObject({
    level: 'warn',
    msg: 'limit changed state',
    upstream: 'pay',
    problem: 'unreachable: connection refused',
  });
});

test('reports a block of one path while other requests pass, and its end, without a change of state', async () => {
  let status = 503;
  const upstream = await startHttpUpstream((_, response, { target }) =>
    response.writeHead(target.startsWith('/reports') ? status : 200).end(),
  );
  const gate = await startTidegate(`
clients: {trustedProxies: [127.0.0.1], key: [header:x-api-key, ip]}
upstreams: {pay: {url: "${upstream.url}", retry: {attempts: 1}, queue: {maxWait: 10ms}}}
`);
  let n = 0;
  const ask = (path: string): Promise<unknown> => {
    n += 1;
    const headers = ['X-Api-Key', `client-${n % 8}`, 'X-Forwarded-For', `203.0.113.${n % 8}`];
    return send(gate.url, path, { headers });
  };
  const lines = () =>
    gate
      .log()
      .filter(({ msg, scope }) => msg === 'limit changed state' && scope === 'upstream')
      .map(({ level, from, to, blocked, unblocked, problem }) => ({ level, from, to, blocked, unblocked, problem }));
  const askUntil = (holds: (found: ReturnType<typeof lines>) => boolean) =>
    eventually(async () => {
      await ask(`/reports/${n}`);
      await ask(`/charges/${n}`);
      return lines();
    }, holds);
  const during = await askUntil((found) => found.some(({ to, blocked }) => to !== 'blocked' && blocked === 'path'));
  expect(during.at(-1)).toMatchObject({ level: 'warn', blocked: 'path', problem: 'responds with 503' });
  expect((await timelineOf(gate.adminUrl)).at(-1)).toBe(
    'blocked pay: blocked only for one path (responds with 503): other requests pass',
  );
  status = 200;
  const after = await askUntil((found) => found.some(({ unblocked }) => unblocked === 'path'));
  expect(after.at(-1)).toMatchObject({ level: 'info', unblocked: 'path' });
  expect((await timelineOf(gate.adminUrl)).at(-1)).toBe('unblocked pay: no longer blocked for one path');
});

test('records an unreachable upstream, the cause of its block and the recovery once for several workers', async () => {
  let isDown = false;
  const upstream = await startHttpUpstream((_, response) => void (isDown ? response.destroy() : response.end()));
  const workers = await startWorkers(
    `workers: 2\n${CLIENTS}upstreams: {pay: {url: "${upstream.url}", retry: {attempts: 1}}}`,
  );
  keepSending(workers.url);
  await eventually(
    () => Promise.resolve(upstream.hits.length),
    (hits) => hits > 20,
  );
  isDown = true;
  const during = await eventually(
    () => timelineOf(workers.adminUrl),
    (events) =>
      events.some((event) => event.startsWith('failing')) && events.some((event) => event.startsWith('blocked')),
  );
  expect(during.filter((event) => event.startsWith('failing'))).toEqual([
    'failing pay: connection closed before a response (every attempt fails)',
  ]);
  for (const event of during.filter((each) => each.startsWith('blocked'))) {
    expect(event).toContain('(connection closed before a response)');
  }
  expect(during.some((event) => event.startsWith('unblocked'))).toBe(false);
  isDown = false;
  const after = await eventually(
    () => timelineOf(workers.adminUrl),
    (events) =>
      events.some((event) => event.startsWith('recovered')) && events.some((event) => event.startsWith('unblocked')),
  );
  expect(after.filter((event) => event.startsWith('recovered'))).toHaveLength(1);
  const lines = await eventually(
    () => workers.log().filter(({ msg }) => msg === 'upstream failing' || msg === 'upstream recovered'),
    ({ length }) => length >= 2,
  );
  expect(lines.map(({ msg, worker }) => [msg, worker])).toEqual([
    ['upstream failing', undefined],
    ['upstream recovered', undefined],
  ]);
});
