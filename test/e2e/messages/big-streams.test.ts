import { expect, onTestFinished, test } from 'vitest';
import type { BodyFraming, BodyDirection } from '../../support/upstreams/big-body-upstream.ts';
import { MIB, measurePeakMemory, startBigBodyUpstream, streamBody } from '../../support/upstreams/big-body-upstream.ts';
import { startProcess } from '../../support/proxy/process.ts';
import { builtProgram } from '../../support/programs/built-program.ts';
import { eventually } from '../../support/proxy/tidegate.ts';

/** Large enough to show memory that grows with the body; `npm run bench:streams` streams 5 GiB. */
const SIZE = 256 * MIB;
/** Allowed growth in bytes after the warm-up: on a busy machine garbage is collected late. */
const ALLOWED = SIZE / 2;

test('memory use does not grow with the size of a body, in either direction', async () => {
  const upstream = await startBigBodyUpstream();
  onTestFinished(upstream.close);
  const args = ['--upstream', upstream.url, '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'];
  const running = startProcess(args);
  const lines = await eventually(running.log, (seen) => seen.some(({ msg }) => msg === 'listening'));
  const { url, admin } = lines.find(({ msg }) => msg === 'listening') as { url: string; admin: string };

  const ways: readonly [BodyDirection, BodyFraming][] = [
    ['down', 'length'],
    ['up', 'chunked'],
  ];
  const peakOf = (length: number) =>
    measurePeakMemory(admin, async () => {
      for (const [way, framing] of ways) await streamBody(url, way, framing, length);
    });
  const warm = await peakOf(32 * MIB);
  const peak = await peakOf(SIZE);
  expect(warm).toBeGreaterThan(50 * MIB); // the measurement saw the process
  expect(peak - warm).toBeLessThan(ALLOWED);
});

test('buffers of a streamed body are freed without full garbage collections', async () => {
  const upstream = await startBigBodyUpstream();
  onTestFinished(upstream.close);
  const args = [
    builtProgram('main'),
    'serve',
    '--upstream',
    upstream.url,
    '--listen',
    '127.0.0.1:0',
    '--admin',
    '127.0.0.1:0',
  ];
  const running = startProcess(args, { script: '--trace-gc' });
  let gcLog = '';
  running.child.stdout.on('data', (text: string) => (gcLog += text));
  const lines = await eventually(running.log, (seen) => seen.some(({ msg }) => msg === 'listening'));
  const { url } = lines.find(({ msg }) => msg === 'listening') as { url: string };
  await streamBody(url, 'up', 'length', 32 * MIB);
  expect(gcLog).toContain('Scavenge');

  // A chunked response is left out: its pieces lie between chunk sizes, in buffers shared with other reads.
  const ways: readonly [BodyDirection, BodyFraming][] = [
    ['down', 'length'],
    ['up', 'length'],
    ['up', 'chunked'],
  ];
  for (const [way, framing] of ways) {
    let fewest = Number.POSITIVE_INFINITY;
    // On a busy machine V8 may collect once more. A body that is not freed shows in each of these.
    for (let i = 0; i < 3 && fewest > 2; i += 1) {
      const before = countFull(gcLog);
      await streamBody(url, way, framing, 2 * SIZE);
      fewest = Math.min(fewest, countFull(gcLog) - before);
    }
    // V8 starts a full collection for every 64 MB of external memory, which would be eight.
    expect(fewest, `${way} ${framing}`).toBeLessThanOrEqual(2);
  }
});

const countFull = (gcLog: string): number => gcLog.split('Mark-Compact').length - 1;
