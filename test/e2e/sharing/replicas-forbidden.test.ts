/** Redis users without pub/sub permission, the default for a new user in Redis 7. */
import { expect, test } from 'vitest';
import { startRedis } from '../../support/redis/redis-server.ts';
import { expectReportedOnce, expectUnharmed, startReplicas } from '../../support/proxy/replicas.ts';
import { pause } from '../../support/pause.ts';
import { eventually } from '../../support/proxy/tidegate.ts';

const UNAVAILABLE = 'pub/sub of the shared store unavailable: cuts and holds of other replicas arrive late';
const AVAILABLE = 'pub/sub of the shared store available again';

test.each([
  ['no channel', ['~tidegate:*', 'resetchannels', '+@all']],
  ['no PUBLISH', ['~tidegate:*', '&*', '+@all', '-publish']],
])('with %s, limits are shared, and the missing permission is logged once', async (_, rules) => {
  const redis = await startRedis();
  const admin = redis.client();
  const allow = (...given: readonly string[]) => admin.call('ACL', 'SETUSER', 'gate', ...given);
  await allow('on', '>word', ...rules);
  const url = redis.url.replace('//', '//gate:word@');
  const run = await startReplicas([url, url]);
  expectUnharmed(run, await run.during(() => pause(1500)));
  expectReportedOnce(run, []);
  const countOf = (message: string): number[] =>
    run.gates.map((gate) => gate.log().filter(({ msg }) => msg === message).length);
  await eventually(
    () => countOf(UNAVAILABLE),
    (counts) => Math.min(...counts) > 0,
  );
  await allow('&*', '+publish');
  await eventually(
    () => countOf(AVAILABLE),
    (counts) => Math.min(...counts) > 0,
  );
  expect([countOf(UNAVAILABLE), countOf(AVAILABLE)]).toEqual([
    [1, 1],
    [1, 1],
  ]);
});
