import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PracticeSpec } from '../../../src/simulator/practice/practice-spec.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import type { Agreement } from './agreement.ts';
import { compare } from './agreement.ts';
import type { GoodputContenderName } from './contenders.ts';
import { startContender } from './contenders.ts';
import type { LimitKind } from './kinds.ts';
import { capacity } from './kinds.ts';
import { measure } from './measure.ts';
import { METHOD } from './method.ts';
import type { GoodputOptions } from './options.ts';
import { Program } from '../program.ts';
import type { GoodputRow } from './row.ts';
import { findFaults, makeRow } from './row.ts';
import { simulate } from './simulate.ts';

export interface KindResult {
  readonly kind: LimitKind;
  readonly rows: readonly GoodputRow[];
  /** Undefined if Tidegate was not measured. */
  readonly agreement: Agreement | undefined;
  /** Implausible results. */
  readonly faults: readonly string[];
}

/** Measures every contender with the same upstream, one after another, each from a cold start. */
export async function runKind(
  kind: LimitKind,
  contenders: readonly GoodputContenderName[],
  options: GoodputOptions,
  onRow: (row: GoodputRow) => void,
): Promise<KindResult> {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-goodput-'));
  const spec: PracticeSpec = { ...kind.upstream, seed: options.seed };
  const specFile = join(folder, 'practice.json');
  writeFileSync(specFile, JSON.stringify(spec));
  const args = ['src/simulator/practice/main.ts', '--listen', '127.0.0.1:0', '--spec', specFile];
  const practice = new Program({ command: process.execPath, args, stopSignal: 'SIGKILL' });
  const rows: GoodputRow[] = [];
  try {
    const upstream = await practice.printed(/practice upstream on (http:\S+)\n/);
    for (const contender of contenders) {
      const row = await runContender(contender, kind, upstream, folder, options);
      onRow(row);
      rows.push(row);
    }
  } finally {
    await practice.stop();
    rmSync(folder, { recursive: true, force: true });
  }
  const ours = rows.find(({ contender }) => contender === 'tidegate');
  return {
    kind,
    rows,
    agreement: ours === undefined ? undefined : compare(ours, simulateKind(kind, options)),
    faults: rows.flatMap((row) =>
      findFaults(row, allowedBy(kind, options)).map((fault) => `${kind.name}, ${row.contender}: ${fault}`),
    ),
  };
}

async function runContender(
  contender: GoodputContenderName,
  kind: LimitKind,
  upstream: string,
  folder: string,
  options: GoodputOptions,
): Promise<GoodputRow> {
  const { url, stop } = await startContender(contender, upstream, folder, options.workers);
  try {
    const measurement = await measure({
      urls: [url],
      upstream,
      clients: METHOD.clients,
      rate: METHOD.overload * capacity(kind),
      warmup: warmupOf(kind, options),
      span: spanOf(kind, options),
      deadline: METHOD.deadline,
      isService: false,
      seed: options.seed,
    });
    return makeRow(contender, measurement, allowedBy(kind, options));
  } finally {
    await stop();
  }
}

function simulateKind(kind: LimitKind, options: GoodputOptions): ReturnType<typeof simulate> {
  const { seed } = options;
  const seeds = Array.from({ length: METHOD.simulations }, (_, index) => seed + index);
  const times = { warmup: warmupOf(kind, options), span: spanOf(kind, options) };
  return simulate({ kind, clients: METHOD.clients, overload: METHOD.overload, ...times }, seeds);
}

function warmupOf(kind: LimitKind, options: GoodputOptions): Millis {
  return 1000 * (options.warmup ?? kind.warmup);
}

function spanOf(kind: LimitKind, options: GoodputOptions): Millis {
  return 1000 * (options.seconds ?? kind.seconds);
}

function allowedBy(kind: LimitKind, options: GoodputOptions): number {
  return (capacity(kind) * spanOf(kind, options)) / 1000;
}
