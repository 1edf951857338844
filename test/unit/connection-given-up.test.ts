/** While the loop is busy, requests are sent at the end of the turn in which they came: one may be given up before. */
import { buildConnector } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import type { AttemptOwner } from '../../src/http/upstream/upstream-attempt.ts';
import { Attempt } from '../../src/http/upstream/upstream-attempt.ts';
import { ConnectionPool } from '../../src/http/upstream/http1-connection-pool.ts';
import { Errand } from '../../src/http/upstream/http1-connection.ts';
import { clientOptions } from '../../src/http/upstream/connector.ts';
import { startHttpUpstream } from '../support/http-upstream.ts';
import { keepBusy } from '../support/keep-busy.ts';
import { eventually } from '../support/tidegate.ts';

async function openPool() {
  const upstream = await startHttpUpstream((_n, response) => response.end('ok'));
  const origin = upstream.url;
  const pool = new ConnectionPool({
    origin,
    most: 1,
    clock: performance,
    client: clientOptions(),
    connect: buildConnector({}),
    leadsTo: () => true,
    onFree: () => undefined,
  });
  onTestFinished(() => pool.destroy());
  const begin = (path: string) => {
    const told: string[] = [];
    const owner: AttemptOwner = {
      mayStart: () => true,
      onInformation: () => undefined,
      onHead: (status) => {
        told.push(String(status));
        attempt.discard();
      },
      onFailure: ({ reason }) => told.push(reason),
      onUnsendable: (detail) => told.push(detail),
      onProgress: () => undefined,
      onEnd: () => undefined,
      onBroken: () => undefined,
      onOver: () => {
        errand.isOver = true;
        pool.over(errand);
      },
    };
    const attempt = new Attempt(owner, null);
    const errand = new Errand(
      { origin, method: 'GET', path, headers: ['host', 'x'], servername: '', body: null },
      attempt,
    );
    pool.send(errand, false);
    return { attempt, told };
  };
  const ask = async (path: string): Promise<void> => {
    const { told, attempt } = begin(path);
    await eventually(
      () => attempt.isOver,
      (isOver) => isOver,
    );
    expect(told).toEqual(['200']);
  };
  return { upstream, begin, ask };
}

test('one that was given up in its own turn is not sent, and its connection serves the next', async () => {
  const { upstream, begin, ask } = await openPool();
  await ask('/first');
  await keepBusy();
  const { attempt, told } = begin('/given-up');
  attempt.cancel();
  await ask('/next');
  expect(upstream.hits.map(({ target }) => target)).toEqual(['/first', '/next']);
  expect(told).toEqual([]);
  expect(upstream.connections()).toBe(1);
});

test('one that waits for the connection of one that was given up gets it, and is sent once', async () => {
  const { upstream, begin, ask } = await openPool();
  await ask('/first');
  await keepBusy();
  const { attempt } = begin('/given-up');
  const waiting = ask('/waiting');
  attempt.cancel();
  await waiting;
  await ask('/last');
  expect(upstream.hits.map(({ target }) => target)).toEqual(['/first', '/waiting', '/last']);
  expect(upstream.connections()).toBe(1);
});
