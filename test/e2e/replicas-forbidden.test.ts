/** A Redis whose access list lets replicas keep limits, and not tell each other: as it is for a new user of Redis 7. */
import { expect, test } from 'vitest';
import { startRedis } from '../support/redis-server.ts';
import { expectToldOnce, expectUnharmed, startReplicas } from '../support/replicas.ts';
import { pause } from '../support/pause.ts';
import { eventually } from '../support/tidegate.ts';

const DEAF = 'the store lets us hear or tell nothing: cuts and holds are known late';
const HEARS = 'the store lets us hear and tell again';

test.each([
  ['no channel', ['~tidegate:*', 'resetchannels', '+@all']],
  ['no PUBLISH', ['~tidegate:*', '&*', '+@all', '-publish']],
])('%s: limits are shared all the same, and it is told once', async (_, rules) => {
  const redis = await startRedis();
  const admin = redis.client();
  const allow = (...given: readonly string[]) => admin.call('ACL', 'SETUSER', 'gate', ...given);
  await allow('on', '>word', ...rules);
  const url = redis.url.replace('//', '//gate:word@');
  const run = await startReplicas([url, url]);
  expectUnharmed(run, await run.during(() => pause(1500)));
  expectToldOnce(run, []);
  const told = (message: string): number[] =>
    run.gates.map((gate) => gate.log().filter(({ msg }) => msg === message).length);
  await eventually(
    () => told(DEAF),
    (counts) => Math.min(...counts) > 0,
  );
  await allow('&*', '+publish');
  await eventually(
    () => told(HEARS),
    (counts) => Math.min(...counts) > 0,
    15_000,
  );
  expect([told(DEAF), told(HEARS)]).toEqual([
    [1, 1],
    [1, 1],
  ]);
});
