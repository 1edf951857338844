/** A disk without room for the database of keys, and what clients get meanwhile and after. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { send } from '../../support/clients/send.ts';
import { openLimitedDisk } from '../../support/limited-disk.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { startWorkers } from '../../support/proxy/workers.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const PATIENCE = 300_000;
const STORED_AGAIN = 'idempotency keys are stored again';

test.each([
  ['one process', 1],
  ['two workers', 2],
])(
  'while the disk is full, writes with keys are refused unsent, or decided locally, and all else goes on: %s',
  async (_, workers) => {
    const upstream = await startHttpUpstream((_nth, response) => void response.end('done'));
    const sent = (key: string) => upstream.hits.filter(({ body }) => body.toString() === key).length;
    const disk = openLimitedDisk();
    const config = `
workers: ${workers}
state: {store: sqlite, file: ${join(disk.folder, 'state.db')}}
upstreams:
  api: {url: "${upstream.url}", idempotency: {ttl: 1h}}
  lenient: {url: "${upstream.url}", idempotency: {ttl: 1h, onStoreLost: local}}
routes: [{path: /, upstream: api}, {path: /local, upstream: lenient}]
`;
    const gate = await startWorkers(config);
    const pid = gate.child.pid ?? 0;
    const pay = (key: string, path = '/pay', url = gate.url) =>
      send(url, path, { method: 'POST', body: key, headers: ['Idempotency-Key', key] });
    expect((await pay('before')).status).toBe(200);

    let attempts = 0;
    const refused = await eventually(
      async () => {
        disk.fill(pid);
        attempts += 1;
        const key = `order-${attempts}`;
        return { key, ...(await pay(key)) };
      },
      ({ status }) => status !== 200,
      60_000,
    );
    const { status, json, header, key } = refused;
    expect([status, json()['reason'], header('retry-after'), header('tidegate-outcome')]).toEqual([
      ...[503, 'key_store_lost', '1', undefined],
    ]);
    expect(sent(key)).toBe(0);
    const refusedRepeat = await pay('before');
    expect([refusedRepeat.status, sent('before')]).toEqual([503, 1]);
    expect((await send(gate.url, '/read', { headers: ['Idempotency-Key', 'before'] })).status).toBe(200);
    expect((await send(gate.url, '/write', { method: 'POST', body: 'unkeyed' })).status).toBe(200);
    for (const each of ['here', 'there']) expect((await pay(each, '/local')).status).toBe(200);
    expect([sent('here'), sent('there')]).toEqual([1, 1]);
    const events = 'tidegate_idempotency_keys_total{upstream=';
    expect(await gate.sum(`${events}"lenient",event="decided_locally"}`)).toBe(2);
    expect(await gate.sum(`${events}"api",event="key_store_lost"}`)).toBe(2);
    expect(await gate.sum('tidegate_state_commit_failures_total')).toBeGreaterThan(0);

    disk.makeRoom(pid);
    await eventually(
      () => gate.log().filter(({ msg }) => msg === STORED_AGAIN).length,
      (count) => count === 1,
      60_000,
    );
    expect((await pay('after')).status).toBe(200);
    expect((await pay(key)).status).toBe(200);
    expect(sent(key)).toBe(1);

    // What was decided locally is stored with the first commit that succeeds.
    const paid = ['before', 'after', 'here', 'there', key].length + attempts - 1;
    await eventually(
      () => gate.sum('tidegate_state_writes{state="answered"}'),
      (count) => count === paid,
    );
    gate.child.kill('SIGKILL');
    await gate.ended;
    const second = await startWorkers(config);
    expect(second.log().find(({ msg }) => msg === 'restored idempotency keys')).toMatchObject({
      writes: paid,
      unresolved: 0,
    });
  },
  PATIENCE,
);
