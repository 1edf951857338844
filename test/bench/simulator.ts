/**
 * The cost of the simulator: simulated client requests a second on one core, and the memory of a million clients in one run.
 *
 *     npm run bench:simulator                                    full size, with goals
 *     npm run bench:simulator -- --smoke                         takes seconds, and fails only for gross errors
 *     npm run bench:simulator -- --markdown docs/benchmarks.md   puts the figures between the marks of that file
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { scenarioFile } from '../../src/cli/bundled-scenarios.ts';
import { readFile } from '../../src/cli/read-file.ts';
import { compileScenario } from '../../src/simulator/scenario-file/compile-scenario.ts';
import { loadScenario } from '../../src/simulator/scenario-file/load-scenario.ts';
import { formatMistakes } from '../../src/config/load/mistakes.ts';
import type { GateStore } from '../../src/core/admission/gate-store.ts';
import { runScenario } from '../../src/simulator/run-scenario.ts';
import { UPSTREAM_NAME } from '../../src/simulator/scenario.ts';
import { MemoryStore } from '../../src/store/memory-store.ts';

const { smoke, markdown } = parseArgs({
  options: { smoke: { type: 'boolean', default: false }, markdown: { type: 'string' } },
}).values;

/** Requests a second on one core, bytes, and clients. A smoke run ends before all code is compiled. */
const GOAL = { speed: smoke ? 60_000 : 300_000, memory: 2 * 1024 ** 3, clients: smoke ? 90_000 : 990_000 };
const MARKS = ['<!-- simulator:begin -->', '<!-- simulator:end -->'] as const;

if (markdown !== undefined) aroundMarks(markdown); // fails now, not after a minute

const plains = Array.from({ length: smoke ? 1 : 3 }, () => measure('token-bucket', smoke ? 1_200_000 : 7_200_000));
// The fastest counts, because other load can only slow it down.
const plain = plains.reduce((best, each) => (each.seconds < best.seconds ? each : best));
const million = measure('million-clients', smoke ? 2000 : undefined);
const peak = 1024 * process.resourceUsage().maxRSS;

const speed = plain.requests / plain.seconds;
const rows = [
  ['token-bucket', ...cells(plain), ''],
  ['million-clients', ...cells(million), `${(peak / 1024 ** 2).toFixed(0)} MiB`],
];
const head = ['scenario', 'simulated', 'clients seen', 'requests', 'sends', 'core', 'requests a second', 'peak memory'];
const table = [head, head.map(() => '---'), ...rows].map((line) => `| ${line.join(' | ')} |`).join('\n');
const model = cpus()[0]?.model ?? 'an unknown processor';
const caption = `Node ${process.version}, one core of ${availableParallelism()} × ${model}.`;
console.log(`${table}\n\n${caption}\n`);

const goals = [
  { goal: `at least ${GOAL.speed} requests a second of ten clients`, isMet: speed >= GOAL.speed },
  { goal: `at least ${GOAL.clients} clients seen in the other run`, isMet: million.clients >= GOAL.clients },
  { goal: `at most ${GOAL.memory / 1024 ** 2} MiB`, isMet: peak <= GOAL.memory },
];
for (const { goal, isMet } of goals) console.log(`${isMet ? 'met' : 'MISSED'}: ${goal}`);
if (goals.some(({ isMet }) => !isMet)) process.exitCode = 1;

if (markdown !== undefined) {
  const [before, after] = aroundMarks(markdown);
  writeFileSync(markdown, `${before}${MARKS[0]}\n\n${table}\n\n${caption}\n\n${MARKS[1]}${after}`);
}

interface Measured {
  readonly duration: number;
  /** Tracked clients at the end. */
  readonly clients: number;
  readonly requests: number;
  readonly sends: number;
  /** Seconds of one core. */
  readonly seconds: number;
}

/** @param lasts ms, replaces the scenario's duration */
function measure(name: string, lasts: number | undefined): Measured {
  const file = scenarioFile(name);
  const read = loadScenario(readFile(file), file, { env: {}, readFile });
  if (read.kind === 'mistakes') throw new Error(formatMistakes(read.mistakes));
  const config = { ...read.value, warmup: 0, duration: lasts ?? read.value.duration };
  const { maxTracked } = config.policy;
  const stores: GateStore[] = [];
  // CPU time of this thread, independent of other load.
  const started = process.threadCpuUsage();
  const scenario = compileScenario(name, config);
  const upstreams = [{ name: UPSTREAM_NAME, ...scenario.policy }];
  const { counts } = runScenario({
    scenario,
    seed: config.seed,
    makeStore(_, random, listen) {
      const store = new MemoryStore({ upstreams, maxTracked, random, listen });
      stores.push(store);
      return store;
    },
  });
  const { user, system } = process.threadCpuUsage(started);
  const { duration } = config;
  const clients = stores.reduce((sum, store) => sum + store.clients.view(duration).tracked, 0);
  return { duration, clients, requests: counts.offered, sends: counts.sends, seconds: (user + system) / 1e6 };
}

function cells({ duration, clients, requests, sends, seconds }: Measured): string[] {
  return [
    `${duration / 1000} s`,
    ...[clients, requests, sends].map(String),
    `${seconds.toFixed(1)} s`,
    Math.round(requests / seconds).toString(),
  ];
}

/** Returns the text before and after the marks. @throws if they are not there exactly once and in order */
function aroundMarks(file: string): readonly [before: string, after: string] {
  const [before, rest, ...more] = readFileSync(file, 'utf8').split(MARKS[0]);
  const [, after, ...others] = rest?.split(MARKS[1]) ?? [];
  if (before === undefined || after === undefined || more.length + others.length > 0) {
    throw new Error(`${file} must have ${MARKS.join(' and ')} once each`);
  }
  return [before, after];
}
