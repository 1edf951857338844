import { expect, onTestFinished, test } from 'vitest';
import type { Framing, Way } from '../support/big-streams.ts';
import { MIB, peakWhile, startBigUpstream, stream } from '../support/big-streams.ts';
import { startProcess } from '../support/process.ts';
import { eventually } from '../support/tidegate.ts';

/** Enough to show what grows with a body; `npm run bench:streams` takes 5 GiB. */
const SIZE = 256 * MIB;
/** What a process may take more, once it has warmed up: on a busy machine garbage is collected late. */
const ALLOWED = SIZE / 2;

test('a body of any size takes no more memory than another, down or up', async () => {
  const upstream = await startBigUpstream();
  onTestFinished(upstream.close);
  const args = ['--upstream', upstream.url, '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'];
  const running = startProcess(args);
  const lines = await eventually(running.log, (seen) => seen.some(({ msg }) => msg === 'listening'), 15_000);
  const { url, admin } = lines.find(({ msg }) => msg === 'listening') as { url: string; admin: string };

  const ways: readonly [Way, Framing][] = [
    ['down', 'length'],
    ['up', 'chunked'],
  ];
  const peakOf = (length: number) =>
    peakWhile(admin, async () => {
      for (const [way, framing] of ways) await stream(url, way, framing, length);
    });
  const warm = await peakOf(32 * MIB);
  const peak = await peakOf(SIZE);
  expect(warm).toBeGreaterThan(50 * MIB); // it was really looked at
  expect(peak - warm).toBeLessThan(ALLOWED);
}, 60_000);

test('what a body went through is given back as it goes: no heap is searched for it', async () => {
  const upstream = await startBigUpstream();
  onTestFinished(upstream.close);
  const args = [
    'src/main.ts',
    'serve',
    '--upstream',
    upstream.url,
    '--listen',
    '127.0.0.1:0',
    '--admin',
    '127.0.0.1:0',
  ];
  const running = startProcess(args, { script: '--trace-gc' });
  let told = '';
  running.child.stdout.on('data', (text: string) => (told += text));
  const lines = await eventually(running.log, (seen) => seen.some(({ msg }) => msg === 'listening'), 15_000);
  const { url } = lines.find(({ msg }) => msg === 'listening') as { url: string };
  await stream(url, 'up', 'length', 32 * MIB);
  expect(told).toContain('Scavenge');

  // Not an answer in chunks: its pieces lie between the chunks' lengths, in memory that others are read from too.
  const ways: readonly [Way, Framing][] = [
    ['down', 'length'],
    ['up', 'length'],
    ['up', 'chunked'],
  ];
  for (const [way, framing] of ways) {
    const before = countFull(told);
    await stream(url, way, framing, 2 * SIZE);
    // V8 looks through all of the heap for each 64 MB that lie outside of it, which would be eight times.
    expect(countFull(told) - before, `${way} ${framing}`).toBeLessThanOrEqual(2);
  }
}, 60_000);

const countFull = (told: string): number => told.split('Mark-Compact').length - 1;
