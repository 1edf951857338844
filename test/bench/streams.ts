/**
 * Time and memory of 5 GiB bodies in both directions, with a length and chunked. Memory must not grow with the body. The
 * proxy runs in one process, upstream and client in another.
 *
 *     npm run bench:streams              5 GiB, four times: some minutes
 *     npm run bench:streams -- --smoke   64 MiB
 */
import { availableParallelism, cpus } from 'node:os';
import { parseArgs } from 'node:util';
import type { BodyFraming, BodyDirection } from '../support/upstreams/big-body-upstream.ts';
import { MIB, measurePeakMemory, startBigBodyUpstream, streamBody } from '../support/upstreams/big-body-upstream.ts';
import { Program } from './program.ts';

const { smoke } = parseArgs({ options: { smoke: { type: 'boolean', default: false } } }).values;

const WARM_UP = 64 * MIB;
const SIZE = smoke ? WARM_UP : 5 * 1024 * MIB;
/** Allowed growth in bytes after the first bodies: on a busy machine garbage is collected late. */
const GOAL = 256 * MIB;
const WAYS: readonly [BodyDirection, BodyFraming][] = [
  ['down', 'length'],
  ['down', 'chunked'],
  ['up', 'length'],
  ['up', 'chunked'],
];

const upstream = await startBigBodyUpstream();
const args = ['src/main.ts', 'serve', '--upstream', upstream.url, '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'];
const proxy = new Program({ command: process.execPath, args, stopSignal: 'SIGKILL' });
const line = await proxy.printed(/(\{[^\n]*"msg":"listening"[^\n]*\})/);
const { url, admin } = JSON.parse(line) as { readonly url: string; readonly admin: string };

let warm = 0;
for (const [way, framing] of WAYS) {
  warm = Math.max(warm, await measurePeakMemory(admin, () => streamBody(url, way, framing, WARM_UP)));
}
const rows: string[][] = [];
let peak = 0;
for (const [way, framing] of WAYS) {
  const since = performance.now();
  const peakOfWay = await measurePeakMemory(admin, () => streamBody(url, way, framing, SIZE));
  const seconds = (performance.now() - since) / 1000;
  peak = Math.max(peak, peakOfWay);
  rows.push([way, framing, `${seconds.toFixed(1)} s`, `${(SIZE / MIB / seconds).toFixed(0)} MiB/s`, inMib(peakOfWay)]);
  console.log(rows.at(-1)?.join('  '));
}
await proxy.stop();
upstream.close();

const head = ['way', 'framing', `${SIZE / MIB} MiB took`, 'rate', 'most memory'];
const table = [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
const caption = `Node ${process.version}, ${availableParallelism()} × ${cpus()[0]?.model ?? 'an unknown processor'}; ${inMib(warm)} after the first bodies of ${inMib(WARM_UP)}.`;
console.log(`\n${table}\n\n${caption}\n`);

const isMet = peak - warm <= GOAL;
console.log(`${isMet ? 'met' : 'MISSED'}: at most ${inMib(GOAL)} more than after the first bodies`);
if (!isMet) process.exitCode = 1;

function inMib(bytes: number): string {
  return `${Math.round(bytes / MIB)} MiB`;
}
