import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PracticeSpec } from '../../../src/simulator/practice/practice-spec.ts';
import type { Millis } from '../../../src/core/exchange/attempt-outcome.ts';
import type { Agreement } from './agreement.ts';
import { compare } from './agreement.ts';
import type { ContenderName } from './contenders.ts';
import { stand } from './contenders.ts';
import type { Kind } from './kinds.ts';
import { capacity } from './kinds.ts';
import { measure } from './measure.ts';
import { METHOD } from './method.ts';
import type { Options } from './options.ts';
import { Program } from '../program.ts';
import type { Row } from './row.ts';
import { findFaults, makeRow } from './row.ts';
import { simulate } from './simulate.ts';

export interface KindResult {
  readonly kind: Kind;
  readonly rows: readonly Row[];
  /** Undefined when Tidegate itself was not measured. */
  readonly agreement: Agreement | undefined;
  /** What cannot be right. */
  readonly faults: readonly string[];
}

/** Every contender in front of the same upstream, one after another, each from a cold start. */
export async function runKind(
  kind: Kind,
  contenders: readonly ContenderName[],
  options: Options,
  told: (row: Row) => void,
): Promise<KindResult> {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-goodput-'));
  const spec: PracticeSpec = { ...kind.upstream, seed: options.seed };
  const specFile = join(folder, 'practice.json');
  writeFileSync(specFile, JSON.stringify(spec));
  const args = ['src/simulator/practice/main.ts', '--listen', '127.0.0.1:0', '--spec', specFile];
  const practice = new Program({ command: process.execPath, args, stopSignal: 'SIGKILL' });
  const rows: Row[] = [];
  try {
    const upstream = await practice.printed(/practice upstream on (http:\S+)\n/);
    for (const contender of contenders) {
      const row = await runContender(contender, kind, upstream, folder, options);
      told(row);
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
  contender: ContenderName,
  kind: Kind,
  upstream: string,
  folder: string,
  options: Options,
): Promise<Row> {
  const { url, stop } = await stand(contender, upstream, folder, options.workers);
  try {
    const measurement = await measure({
      urls: [url],
      upstream,
      clients: METHOD.clients,
      rate: METHOD.overload * capacity(kind),
      warmup: warmupOf(kind, options),
      span: spanOf(kind, options),
      deadline: METHOD.deadline,
      seed: options.seed,
    });
    return makeRow(contender, measurement, allowedBy(kind, options));
  } finally {
    await stop();
  }
}

function simulateKind(kind: Kind, options: Options): ReturnType<typeof simulate> {
  const { seed } = options;
  const seeds = Array.from({ length: METHOD.simulations }, (_, index) => seed + index);
  const times = { warmup: warmupOf(kind, options), span: spanOf(kind, options) };
  return simulate({ kind, clients: METHOD.clients, overload: METHOD.overload, ...times }, seeds);
}

function warmupOf(kind: Kind, options: Options): Millis {
  return 1000 * (options.warmup ?? kind.warmup);
}

function spanOf(kind: Kind, options: Options): Millis {
  return 1000 * (options.seconds ?? kind.seconds);
}

function allowedBy(kind: Kind, options: Options): number {
  return (capacity(kind) * spanOf(kind, options)) / 1000;
}
