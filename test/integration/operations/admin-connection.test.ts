/** Requests of commands to the admin port: over one connection, with bounded responses. */
import { expect, test } from 'vitest';
import { AdminConnection, requestAdmin } from '../../../src/cli/admin-request.ts';
import { withDeliveriesApi } from '../../../src/cli/deliveries/deliveries-api.ts';
import { runDeliveries } from '../../../src/cli/deliveries/deliveries-command.ts';
import { apiDeliveryId, deliveriesPage, deliveryRow } from '../../support/deliveries/delivery-builders.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const MIB = 1024 * 1024;
const CALL = { method: 'GET', path: '/api/deliveries', subject: 'deliveries', problems: [404] } as const;

function connect(admin: string) {
  const connection = AdminConnection.open({ admin, token: 'a-token' });
  if ('kind' in connection) throw new Error(connection.message);
  return connection;
}

test('sends many requests over one connection, with the token and the method', async () => {
  const server = await startHttpUpstream((n, response) => {
    if (n === 2) response.writeHead(404, { 'content-type': 'application/problem+json' }).end('{"detail": "Gone."}');
    else response.end(`{"n": ${n}}`);
  });
  const connection = connect(server.url);
  expect(await connection.send(CALL)).toEqual({ kind: 'answered', payload: { n: 1 } });
  expect(await connection.send({ ...CALL, method: 'POST', path: '/api/x/retry' })).toEqual({
    ...{ kind: 'refused', status: 404, detail: 'Gone.' },
    failure: { kind: 'failed', message: 'deliveries: Gone.', exitCode: 1 },
  });
  expect(await connection.send(CALL)).toEqual({ kind: 'answered', payload: { n: 3 } });
  await connection.close();
  expect(server.connections()).toBe(1);
  expect(server.hits.map(({ method, target }) => `${method} ${target}`)).toEqual([
    ...['GET /api/deliveries', 'POST /api/x/retry', 'GET /api/deliveries'],
  ]);
  expect(server.hits[1]?.headers).toEqual(expect.arrayContaining(['Bearer a-token']));
});

test('a response that is too long is a failure, and the next request gets its own', async () => {
  const server = await startHttpUpstream((n, response) => response.end(n === 1 ? ' '.repeat(2 * MIB + 1) : '[]'));
  const connection = connect(server.url);
  expect(await connection.send({ ...CALL, maxBytes: 2 * MIB })).toEqual({
    kind: 'too_long',
    failure: {
      ...{ kind: 'failed', exitCode: 1 },
      message: `deliveries: the response of ${server.url} is longer than 2 MiB`,
    },
  });
  expect(await connection.send(CALL)).toEqual({ kind: 'answered', payload: [] });
  await connection.close();
});

test('a response that is cut off is a failure', async () => {
  const server = await startHttpUpstream((_n, response) => {
    response.writeHead(200, { 'content-length': 100 });
    response.write('{"deliveries": [', () => response.destroy());
  });
  expect(await requestAdmin({ ...CALL, admin: server.url, token: undefined })).toEqual({
    ...{ kind: 'failed', exitCode: 1 },
    message: `the response of ${server.url} has been cut off (UND_ERR_SOCKET): has tidegate stopped?`,
  });
});

test('a page that is too long is read in parts', async () => {
  const limits: string[] = [];
  const server = await startHttpUpstream((_n, response, { target }) => {
    const query = new URL(target, 'http://localhost').searchParams;
    const limit = query.get('limit') ?? '';
    limits.push(limit);
    if (Number(limit) > 100) return void response.end(' '.repeat(17 * MIB));
    const isLast = query.get('after') !== null;
    response.end(JSON.stringify(deliveriesPage([deliveryRow(isLast ? 2 : 1)], isLast ? null : apiDeliveryId(1))));
  });
  const found: string[] = [];
  const failed = await withDeliveriesApi({ admin: server.url, token: undefined }, async (api) => {
    for await (const page of api.pages({ state: 'dead' })) {
      if (page.kind !== 'fetched') return page;
      found.push(...page.data.deliveries.map(({ id }) => id));
    }
    return undefined;
  });
  expect(failed).toBeUndefined();
  expect(found).toEqual([apiDeliveryId(1), apiDeliveryId(2)]);
  expect(limits).toEqual(['500', '63', '63']);
});

test('an export that fails names the command for the rest', async () => {
  const page = JSON.stringify(deliveriesPage([deliveryRow(1), deliveryRow(2)], apiDeliveryId(2)));
  const server = await startHttpUpstream((n, response) => void (n === 1 ? response.end(page) : response.end('{}')));
  const access = { admin: server.url, token: undefined };
  const action = { name: 'export', query: { state: 'dead' }, message: false } as const;
  const written: string[] = [];
  const write = (text: string) => {
    written.push(text);
    return Promise.resolve(true);
  };
  const command = { kind: 'deliveries', action, admin: '9902', token: undefined, json: false } as const;
  expect(await runDeliveries(command, { access, program: 'tidegate', write })).toEqual({
    ...{ kind: 'failed', exitCode: 1 },
    message:
      `the export has stopped (for the rest, run tidegate deliveries export --state dead --after ${apiDeliveryId(2)} --admin 9902): ` +
      `${server.url} answered with 200: is this the admin port of tidegate?`,
  });
  expect(written.join('').split('\n')).toHaveLength(3);
});
