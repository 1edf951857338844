/** What Redis does while a process starts: each part that receives events exists then, or `startTidegate` fails. */
import { expect, onTestFinished, test } from 'vitest';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import { startRelay } from '../../support/relay/relay.ts';

const LOST = 'pub/sub of the shared store unavailable: cuts and holds of other replicas arrive late';

test('a subscription that is refused before the connection for commands is ready', async () => {
  const redis = await startRedis();
  await redis.client().call('ACL', 'SETUSER', 'gate', 'on', '>word', '~tidegate:*', 'resetchannels', '+@all');
  const relay = await startRelay(redis.url.replace('redis:', 'http:'));
  onTestFinished(() => relay.close());
  // The first connection is the one for commands.
  relay.injectFaults((nth) => (nth === 1 ? { down: { delay: 200 } } : {}));
  const gate = await startTidegate(`
upstreams: {api: {url: "http://127.0.0.1:9"}}
state: {store: redis, url: "redis://gate:word@127.0.0.1:${relay.port}"}
`);
  const [line] = await eventually(
    () => gate.log().filter(({ msg }) => msg === LOST),
    ({ length }) => length > 0,
  );
  expect(line).toMatchObject({ level: 'warn', store: 'redis' });
});
