// CPU time of a request by part of the proxy. A profile under load gives the proportions, the system the total.
//
//   npm run bench:parts -- [--smoke] [--json FILE] [--markdown FILE]

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { writeSection } from '../control/section.ts';
import type { ControlTable } from '../control/table.ts';
import { toMarkdown, toText } from '../control/table.ts';
import { tidegateConfig } from '../overhead/configs.ts';
import { pinned, programOf, startTidegate } from '../overhead/contenders.ts';
import { measure } from '../overhead/measure.ts';
import type { OverheadWorkload } from '../overhead/workloads.ts';
import { CONNECTIONS, WORKLOADS } from '../overhead/workloads.ts';
import { Program } from '../program.ts';
import { attribute, recorded } from './attribute.ts';

/** Start and length of the profile, and warm-up and counted span of the load, in milliseconds. */
const LONG = { after: 6000, length: 6000, warmup: 4500, span: 6500 };
const SHORT = { after: 1500, length: 500, warmup: 800, span: 800 };
const WRITTEN_WITHIN = 5000;

interface Parts {
  /** Microseconds of CPU time per request. */
  readonly cpu: number;
  /** Share of each part. */
  readonly shares: ReadonlyMap<string, number>;
}

async function profile(workload: OverheadWorkload, times: typeof LONG, folder: string): Promise<Parts> {
  const [command, args] = pinned(0, process.execPath, [programOf('upstream')]);
  const upstream = new Program({ command, args, stopSignal: 'SIGKILL' });
  const file = join(folder, `${workload.name}.json`);
  const profiler = new URL('profiler.ts', import.meta.url);
  profiler.search = String(new URLSearchParams({ file, after: String(times.after), length: String(times.length) }));
  try {
    const config = tidegateConfig(await upstream.printed(/listening on (http:\S+)/));
    const { url, pid, stop } = await startTidegate(folder, config, ['--import', profiler.href, 'src/main.ts']);
    try {
      const { method, path, upload, download } = workload;
      const { warmup, span } = times;
      const load = { url, method, path, upload, download, connections: CONNECTIONS, clients: 1, warmup, span };
      const { cpu = Number.NaN, failed } = await measure(load, pid);
      if (failed > 0) throw new Error(`${workload.title}: ${failed} requests failed`);
      return { cpu, shares: toShares(attribute(recorded.parse(JSON.parse(await readWhole(file))))) };
    } finally {
      await stop();
    }
  } finally {
    await upstream.stop();
  }
}

async function readWhole(file: string): Promise<string> {
  for (let waited = 0; waited < WRITTEN_WITHIN; waited += 100) {
    try {
      const text = readFileSync(file, 'utf8');
      if (text.endsWith('}')) return text;
    } catch {
      // not written yet
    }
    await sleep(100);
  }
  throw new Error('no profile was written');
}

function toShares(sums: ReadonlyMap<string, number>): Map<string, number> {
  const all = [...sums.values()].reduce((sum, micros) => sum + micros, 0);
  return new Map([...sums].map(([part, micros]) => [part, micros / all]));
}

function tableOf(measured: ReadonlyMap<OverheadWorkload, Parts>): ControlTable {
  const parts = new Map<string, number>();
  for (const { shares } of measured.values()) {
    for (const [part, share] of shares) parts.set(part, (parts.get(part) ?? 0) + share);
  }
  const names = [...parts].toSorted(([, a], [, b]) => b - a).map(([name]) => name);
  const of = ({ cpu, shares }: Parts, name: string): string => (cpu * (shares.get(name) ?? 0)).toFixed(1);
  return {
    title: 'Microseconds of processor time of a request, by part',
    head: ['part', ...[...measured.keys()].map(({ title }) => title)],
    rows: [
      ...names.map((name) => [name, ...[...measured.values()].map((each) => of(each, name))]),
      ['all', ...[...measured.values()].map(({ cpu }) => cpu.toFixed(1))],
    ],
  };
}

const { values } = parseArgs({
  options: {
    smoke: { type: 'boolean', default: false },
    json: { type: 'string' },
    markdown: { type: 'string' },
  },
});
const folder = mkdtempSync(join(tmpdir(), 'tidegate-parts-'));
try {
  const measured = new Map<OverheadWorkload, Parts>();
  for (const workload of WORKLOADS.filter(({ name }) => name !== 'get-1m')) {
    measured.set(workload, await profile(workload, values.smoke ? SHORT : LONG, mkdtempSync(join(folder, 'run-'))));
  }
  const table = tableOf(measured);
  console.log(toText(table));
  if (values.json !== undefined) {
    const report = [...measured].map(([{ name }, { cpu, shares }]) => ({
      name,
      cpu,
      shares: Object.fromEntries(shares),
    }));
    writeFileSync(values.json, `${JSON.stringify(report, undefined, 2)}\n`);
  }
  if (values.markdown !== undefined) writeSection(values.markdown, 'parts', toMarkdown(table));
} catch (error) {
  console.error(`bench:parts: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
