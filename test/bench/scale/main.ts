// Growth of the cost per request with connections, clients and routes. No cost should grow faster than a logarithm.
// docs/performance.md explains the results.
//
//   npm run bench:scale -- --help

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { writeSection } from '../control/section.ts';
import type { ControlTable } from '../control/table.ts';
import { toMarkdown, toText } from '../control/table.ts';
import { tidegateConfig } from '../overhead/configs.ts';
import { pinned, programOf, startTidegate } from '../overhead/contenders.ts';
import { measure } from '../overhead/measure.ts';
import { spreadOf } from '../overhead/runs.ts';
import { Program } from '../program.ts';
import type { ScaleCase } from './cases.ts';
import { CASES } from './cases.ts';

const USAGE = `npm run bench:scale -- [options]

  --rounds N        how often each is measured, in turn (3)
  --seconds N       counted time of each run (3)
  --smoke           a moment of each: does it all work?
  --json FILE       writes every figure
  --markdown FILE   puts the table between the marks of that file
`;

/** Maximum requests in flight, spread over all connections, so that connections are measured and not queueing. */
const IN_FLIGHT = 64;
/** Milliseconds until V8 has compiled hot code, whose threads share the one processor. */
const COMPILED = 8000;

interface Options {
  readonly rounds: number;
  readonly span: number;
  readonly warmup: number;
  readonly smoke: boolean;
  readonly json: string | undefined;
  readonly markdown: string | undefined;
}

/** CPU time per request in µs, and resident memory afterwards in bytes. */
interface Figure {
  readonly cpu: number;
  readonly resident: number;
  readonly failed: number;
}

function readOptions(args: readonly string[]): Options | 'help' {
  const { values } = parseArgs({
    args: [...args],
    options: {
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      smoke: { type: 'boolean', default: false },
      json: { type: 'string' },
      markdown: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return 'help';
  const { smoke, json, markdown } = values;
  const rounds = Number(values.rounds ?? (smoke ? 1 : 3));
  const seconds = Number(values.seconds ?? (smoke ? 0.3 : 3));
  if (!(rounds >= 1 && rounds <= 1000)) throw new Error(`--rounds ${values.rounds}: expected a number from 1`);
  if (!(seconds > 0 && seconds <= 1000)) throw new Error(`--seconds ${values.seconds}: expected a number above 0`);
  return { rounds, span: 1000 * seconds, warmup: smoke ? 300 : COMPILED, smoke, json, markdown };
}

async function run(options: Options): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-scale-'));
  const [command, args] = pinned(0, process.execPath, [programOf('upstream')]);
  const upstream = new Program({ command, args, stopSignal: 'SIGKILL' });
  const figures = new Map<string, Figure[]>();
  try {
    const url = await upstream.printed(/listening on (http:\S+)/);
    const cases = options.smoke ? CASES.filter(({ size }) => size <= 100) : CASES;
    for (let round = 1; round <= options.rounds; round += 1) {
      for (const each of cases) {
        const figure = await measureCase(each, url, mkdtempSync(join(folder, 'run-')), options);
        console.log(`${round}. ${each.name}: ${figure.cpu.toFixed(1)} µs, ${figure.failed} failed`);
        figures.set(each.name, [...(figures.get(each.name) ?? []), figure]);
      }
    }
    report(cases, figures, options);
  } finally {
    await upstream.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Measures one case in its own process, so that cases do not affect each other. */
async function measureCase(
  { connections, clients, routes }: ScaleCase,
  upstream: string,
  folder: string,
  { warmup, span }: Options,
): Promise<Figure> {
  const others = Array.from({ length: routes - 1 }, (_, i) => `  - {path: /other-${i}, upstream: practice}\n`);
  const config = `${tidegateConfig(upstream)}routes:\n${others.join('')}  - {path: /, upstream: practice}\n`;
  const { url, pid, stop } = await startTidegate(folder, config);
  try {
    const what = { method: 'GET', path: '/1k', upload: 0, download: 1024 } as const;
    const plan = { ...what, url, connections, clients, inFlight: IN_FLIGHT, span };
    // Opening many connections takes time.
    const {
      cpu = Number.NaN,
      resident = Number.NaN,
      failed,
    } = await measure({ ...plan, warmup: warmup + connections / 5 }, pid);
    return { cpu, resident, failed };
  } finally {
    await stop();
  }
}

function report(cases: readonly ScaleCase[], figures: ReadonlyMap<string, readonly Figure[]>, options: Options): void {
  const table: ControlTable = {
    title: 'Processor time a request of GET 1 KB, and memory',
    head: ['what grows', 'to', 'µs', 'min–max', 'resident'],
    rows: cases.map(({ name, what, size }) => {
      const cpu = spreadOf((figures.get(name) ?? []).map((figure) => figure.cpu));
      const resident = spreadOf((figures.get(name) ?? []).map((figure) => figure.resident));
      return [
        what,
        String(size),
        cpu?.median.toFixed(0) ?? '',
        cpu === undefined ? '' : `${cpu.min.toFixed(0)}–${cpu.max.toFixed(0)}`,
        `${((resident?.median ?? 0) / 2 ** 20).toFixed(0)} MiB`,
      ];
    }),
  };
  console.log(`\n${toText(table)}`);
  if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify([...figures], undefined, 2)}\n`);
  if (options.markdown !== undefined) writeSection(options.markdown, 'scale', toMarkdown(table));
  const failed = [...figures].filter(([, those]) => those.some((figure) => figure.failed > 0));
  for (const [name] of failed) console.error(`FAULT ${name}: some requests failed`);
  if (failed.length > 0) process.exitCode = 1;
  else if (options.smoke) console.log('Smoke run passed; figures of so short a run are not meaningful.');
}

try {
  const options = readOptions(process.argv.slice(2));
  if (options === 'help') console.log(USAGE);
  else await run(options);
} catch (error) {
  console.error(`bench:scale: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
