import { expect, test } from 'vitest';
import { pause } from '../support/pause.ts';
import { countReasons, endure } from '../support/under-load.ts';

test.each(['HTTP/1.1', 'HTTP/2'])(
  'while every answer breaks at some byte, each client over %s sees it or is told, and nobody is charged twice',
  async (version) => {
    const { told } = await endure(
      async ({ relay }) => {
        // An answer is some 330 bytes or more, of which its head is 130.
        relay.spoil((_, random) => ({ down: { end: { after: [0, 300], how: random() < 0.5 ? 'cut' : 'reset' } } }));
        await pause(1500);
        relay.heal();
      },
      { settings: 'perTryTimeout: 1s', http2: version === 'HTTP/2' },
    );
    expect(told.filter(({ cut, status }) => cut && status === 200).length).toBeGreaterThan(20);
    expect(countReasons(told).get('reset')).toBeGreaterThan(20);
  },
  90_000,
);
