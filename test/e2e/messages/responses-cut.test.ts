import { expect, test } from 'vitest';
import type { LoadClientResult } from '../../support/clients/load-clients.ts';
import { countReasons, runFaultLoad } from '../../support/proxy/fault-load.ts';
import { eventually } from '../../support/proxy/tidegate.ts';

test.each(['HTTP/1.1', 'HTTP/2'])(
  'over %s, a truncated upstream response reaches the client as an error, and no charge is doubled',
  async (version) => {
    const { results } = await runFaultLoad(
      async ({ relay, results: resultsSoFar }) => {
        // A response is about 330 bytes or more; its head is 130.
        relay.injectFaults((_, random) => ({
          down: { end: { after: [0, 300], how: random() < 0.5 ? 'cut' : 'reset' } },
        }));
        await eventually(
          () => ({ truncated: countTruncated(resultsSoFar()), reset: countReasons(resultsSoFar()).get('reset') ?? 0 }),
          ({ truncated, reset }) => truncated > 20 && reset > 20,
          60_000,
          100,
        );
        relay.clearFaults();
      },
      { settings: 'perTryTimeout: 1s', http2: version === 'HTTP/2' },
    );
    expect(countTruncated(results)).toBeGreaterThan(20);
    expect(countReasons(results).get('reset')).toBeGreaterThan(20);
  },
  120_000,
);

function countTruncated(results: readonly LoadClientResult[]): number {
  return results.filter(({ cut, status }) => cut && status === 200).length;
}
