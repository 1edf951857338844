import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Millis } from '../../../../src/core/scalars.ts';
import type { PracticeSpec } from '../../../../src/simulator/practice/practice-spec.ts';
import { Program } from '../../program.ts';
import { capacity } from '../kinds.ts';
import { measure } from '../measure.ts';
import { METHOD } from '../method.ts';
import type { GoodputOptions } from '../options.ts';
import type { ServiceContenderName } from './service-contenders.ts';
import { SMOKED, startServiceContender } from './service-contenders.ts';
import type { ServiceKind } from './service-kinds.ts';
import type { ServiceRow } from './service-row.ts';
import { findServiceFaults, makeServiceRow } from './service-row.ts';

export interface ServiceResult {
  readonly kind: ServiceKind;
  readonly rows: readonly ServiceRow[];
  /** Implausible results. */
  readonly faults: readonly string[];
}

/** Measures every contender with every service, one after another. A smoke run has few of them. */
export async function runServices(
  present: readonly ServiceContenderName[],
  options: GoodputOptions,
  onRow: (kind: ServiceKind, row: ServiceRow) => void,
): Promise<ServiceResult[]> {
  const results: ServiceResult[] = [];
  for (const [index, kind] of options.services.entries()) {
    const smoked = SMOKED[index === 0 ? 0 : 1];
    const rows: ServiceRow[] = [];
    for (const contender of options.smoke ? present.filter((name) => smoked.includes(name)) : present) {
      const row = await runContender(contender, kind, options);
      onRow(kind, row);
      rows.push(row);
    }
    const faults = rows.flatMap((row) =>
      findServiceFaults(row, workBound(kind, options)).map((fault) => `${kind.name}, ${row.contender}: ${fault}`),
    );
    results.push({ kind, rows, faults });
  }
  return results;
}

/** With a service of its own, because another contender's requests might still wait at it. */
async function runContender(
  contender: ServiceContenderName,
  kind: ServiceKind,
  options: GoodputOptions,
): Promise<ServiceRow> {
  const { seed, workers } = options;
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-goodput-'));
  const spec: PracticeSpec = { ...kind.upstream, seed };
  const specFile = join(folder, 'practice.json');
  writeFileSync(specFile, JSON.stringify(spec));
  const args = ['src/simulator/practice/main.ts', '--listen', '127.0.0.1:0', '--spec', specFile];
  const practice = new Program({ command: process.execPath, args, stopSignal: 'SIGKILL' });
  try {
    const upstream = await practice.printed(/practice upstream on (http:\S+)\n/);
    const { url, stop } = await startServiceContender(contender, kind, { upstream, folder, workers });
    try {
      const measurement = await measure({
        urls: [url],
        upstream,
        clients: METHOD.clients,
        rate: METHOD.overload * capacity(kind),
        ...timesOf(kind, options),
        deadline: kind.timeout,
        isService: true,
        seed,
      });
      return makeServiceRow(contender, measurement, workBound(kind, options));
    } finally {
      await stop();
    }
  } finally {
    await practice.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Shorter than elsewhere in a smoke run, because each contender also starts a service, and clients end it with a timeout. */
const SMOKE_TIMES = { warmup: 300, span: 700 } as const;

function timesOf(kind: ServiceKind, options: GoodputOptions): { readonly warmup: Millis; readonly span: Millis } {
  if (options.smoke) return SMOKE_TIMES;
  return { warmup: 1000 * (options.warmup ?? kind.warmup), span: 1000 * (options.seconds ?? kind.seconds) };
}

/** Requests that the service can work on in the counted time. */
function workBound(kind: ServiceKind, options: GoodputOptions): number {
  return (capacity(kind) * timesOf(kind, options).span) / 1000;
}
