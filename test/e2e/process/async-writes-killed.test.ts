/** Writes that are sent later, and the process is killed while it sends them. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { send } from '../../support/clients/send.ts';
import { headerOf, startLedger } from '../../support/deliveries/ledger-upstream.ts';
import { freePort } from '../../support/free-port.ts';
import { startProcess } from '../../support/proxy/process.ts';
import { eventually } from '../../support/proxy/tidegate.ts';

const KEYS = ['a', 'b', 'c', 'd', 'e'];

/** Accepts a write for each key, and kills the process once the provider has charged all of them and responded to none. */
async function killWhileSending(workers: number) {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-killed-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const ledger = await startLedger();
  ledger.state.mode = 'hold';
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const config = join(folder, 'tidegate.yaml');
  writeFileSync(
    config,
    `
listen: 127.0.0.1:${port}
admin: 127.0.0.1:0
workers: ${workers}
secret: a-secret-of-the-tests-0123456789abcdef
state: {store: sqlite, file: ${join(folder, 'state.db')}}
limits: {overload: {eventLoopDelay: 1h}}
upstreams: {psp: {url: "${ledger.url}", retry: {attempts: 1}, idempotency: {ttl: 24h}}}
routes: [{path: /v1, upstream: psp, async: {schedule: {delays: [1s, 1s]}}}]
`,
  );
  const first = startProcess(['--config', config]);
  const charge = (key: string) =>
    send(url, '/v1/charges', {
      method: 'POST',
      headers: ['Idempotency-Key', key, 'Prefer', 'respond-async'],
      body: `{"key":"${key}"}`,
    });
  const accepted = [];
  for (const key of KEYS) {
    accepted.push(
      await eventually(
        () => charge(key).catch(() => undefined),
        (response) => response?.status === 202,
      ),
    );
  }
  await eventually(
    () => ledger.held.length,
    (held) => held === KEYS.length,
  );
  first.child.kill('SIGKILL');
  await first.ended;
  const restart = () => startProcess(['--config', config]);
  const untilState = (location: string, state: string) =>
    eventually(
      () =>
        send(url, location).then(
          (response) => response.json(),
          (): Record<string, unknown> => ({}),
        ),
      (seen) => seen['state'] === state,
    );
  const locations = accepted.map((response) => response?.header('location') ?? '');
  return { ledger, restart, untilState, locations };
}

test.each([1, 2])(
  'writes that a process with %i workers was sending when it was killed are charged once',
  async (workers) => {
    const { ledger, restart, untilState, locations } = await killWhileSending(workers);
    ledger.state.mode = 'charge';
    restart();
    for (const [i, location] of locations.entries()) {
      const done = await untilState(location, 'done');
      expect(done['response']).toMatchObject({ status: 201, body: `{"charge":"${KEYS[i]}"}` });
    }
    expect([...ledger.charges]).toEqual(expect.arrayContaining(KEYS.map((key) => [key, 1])));
    expect(ledger.charges.size).toBe(KEYS.length);
    for (const key of KEYS) {
      expect(ledger.hits.filter((hit) => headerOf(hit, 'idempotency-key') === key)).toHaveLength(2);
    }
  },
);

test('writes that a killed process was sending are unknown, not failed, if the provider refuses them from then on', async () => {
  const { ledger, restart, untilState, locations } = await killWhileSending(1);
  ledger.state.mode = 'unavailable';
  restart();
  for (const location of locations) {
    const unknown = await untilState(location, 'unknown');
    expect(JSON.stringify(unknown['lastAttempt'])).toContain('"reason":"unknown_'); // not processed, or blocked
    expect(unknown).not.toHaveProperty('response');
  }
});
