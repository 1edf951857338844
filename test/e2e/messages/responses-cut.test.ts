import { expect, test } from 'vitest';
import { pause } from '../../support/pause.ts';
import { countReasons, runFaultLoad } from '../../support/proxy/fault-load.ts';

test.each(['HTTP/1.1', 'HTTP/2'])(
  'over %s, a truncated upstream response reaches the client as an error, and no charge is doubled',
  async (version) => {
    const { results } = await runFaultLoad(
      async ({ relay }) => {
        // A response is about 330 bytes or more; its head is 130.
        relay.injectFaults((_, random) => ({
          down: { end: { after: [0, 300], how: random() < 0.5 ? 'cut' : 'reset' } },
        }));
        await pause(1500);
        relay.clearFaults();
      },
      { settings: 'perTryTimeout: 1s', http2: version === 'HTTP/2' },
    );
    expect(results.filter(({ cut, status }) => cut && status === 200).length).toBeGreaterThan(20);
    expect(countReasons(results).get('reset')).toBeGreaterThan(20);
  },
  90_000,
);
