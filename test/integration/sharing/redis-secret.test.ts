/** Replicas find the writes of others by the prefix alone: an operator may change `secret` and the password of Redis. */
import { expect, test } from 'vitest';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

test('a write is known after a change of the secret and of the password', async () => {
  const redis = await startRedis();
  await redis.client().call('ACL', 'SETUSER', 'gate', 'on', '>first', '>second', '~tidegate:*', '&tidegate:*', '+@all');
  const upstream = await startHttpUpstream((n, response) => {
    if (n === 1) response.destroy();
    else response.writeHead(401).end();
  });
  const post = async (password: string, secret: string): Promise<unknown[]> => {
    const gate = await startTidegate(`
${secret}
upstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}}}
state: {store: redis, url: "${redis.url.replace('redis://', `redis://gate:${password}@`)}", timeout: 240ms}
`);
    const headers = ['Idempotency-Key', 'order-1'];
    // A busy machine may let a response of Redis come late: then the client repeats its request, as it is asked to.
    const response = await eventually(
      () => send(gate.url, '/charges', { method: 'POST', body: 'amount=1', headers }),
      ({ status }) => status !== 503,
    );
    return [response.status, response.header('tidegate-outcome')];
  };
  expect(await post('first', '')).toEqual([504, 'unknown']);
  expect(await post('second', `secret: ${'s'.repeat(32)}`)).toEqual([504, 'unknown']);
  expect(await post('second', `secret: ${'t'.repeat(32)}`)).toEqual([504, 'unknown']);
});
