/**
 * What the simulator costs: simulated requests of clients a second on one core, and the memory of a million clients in
 * one run.
 *
 *     npm run bench:simulator              as the goals are meant
 *     npm run bench:simulator -- --smoke   in seconds, and fails only when something is badly wrong
 */
import { parseArgs } from 'node:util';
import { readFile } from '../../src/cli/read-file.ts';
import { loadScenario } from '../../src/config/load-scenario.ts';
import { formatMistakes } from '../../src/config/mistakes.ts';
import { simulate } from '../../src/simulate.ts';

const { smoke } = parseArgs({ options: { smoke: { type: 'boolean', default: false } } }).values;

/** Requests a second of one core, and bytes. A smoke run is over before all of it is compiled. */
const GOAL = { speed: smoke ? 60_000 : 300_000, memory: 2 * 1024 ** 3 };

const plain = measure(`
duration: ${smoke ? '20m' : '2h'}
upstream: {limit: {kind: token-bucket, rate: 100/s, burst: 20}, latency: {kind: exponential, mean: 50ms}}
clients: [{count: 10, total: 200/s}]
`);
tell('plain', plain);
const million = measure(`
duration: ${smoke ? '2s' : '25s'}
upstream: {limit: {kind: token-bucket, rate: 50000/s, burst: 1000}, latency: {kind: exponential, mean: 50ms}}
clients: [{count: 1000000, total: 100000/s}]
policy: {maxTracked: 1000000, rateLimit: {initialRate: 50000/s}}
`);
tell('a million clients', million);

const peak = 1024 * process.resourceUsage().maxRSS;
console.log(`peak memory: ${Math.round(peak / 1024 ** 2)} MiB (goal: at most ${GOAL.memory / 1024 ** 2} MiB)`);
const isFast = plain.requests / plain.seconds >= GOAL.speed;
console.log(`${isFast ? 'met' : 'MISSED'}: at least ${GOAL.speed} requests a second`);
if (!isFast || peak > GOAL.memory) process.exitCode = 1;

interface Measured {
  readonly requests: number;
  readonly sends: number;
  readonly seconds: number;
}

function measure(yaml: string): Measured {
  const read = loadScenario(yaml, 'bench.yaml', { env: {}, readFile });
  if (read.kind === 'mistakes') throw new Error(formatMistakes(read.mistakes));
  // Of this thread, so that what else the machine does makes no difference.
  const started = process.threadCpuUsage();
  const { counts } = simulate('bench', read.value).report;
  const { user, system } = process.threadCpuUsage(started);
  return { requests: counts.offered, sends: counts.sends, seconds: (user + system) / 1e6 };
}

function tell(name: string, { requests, sends, seconds }: Measured): void {
  console.log(
    `${name}: ${requests} requests, ${sends} sends in ${seconds.toFixed(2)} s of one core: ${Math.round(requests / seconds)} requests a second`,
  );
}
