import type { WorkersSpec } from '../../../../src/simulator/limit-models/workers.ts';
import type { Slowdown } from '../../../../src/simulator/service/slowdown.ts';
import type { ClientGroup } from '../../../../src/simulator/scenario.ts';
import type { UpstreamSpec } from '../../../../src/simulator/upstream/upstream-model.ts';
import type { Millis, PerSecond } from '../../../../src/core/scalars.ts';
import type { ControlRow } from './row.ts';
import { CLIENTS, scenarioOf } from './row-builders.ts';

const DURATION: Millis = 120_000;
const HALF: Millis = DURATION / 2;

interface ServiceTerms {
  readonly name: string;
  readonly workers: Omit<WorkersSpec, 'kind'>;
  /** Of a worker; lognormal with a sigma of 0.5, unless `upstream` has another latency. */
  readonly mean: Millis;
  readonly offered: PerSecond;
  /** Without a warm-up: the start counts. */
  readonly isCold?: boolean;
  readonly upstream?: Partial<UpstreamSpec>;
  readonly clients?: readonly ClientGroup[];
}

function serviceRow(
  family: string,
  { name, workers, mean, offered, isCold = false, upstream = {}, clients }: ServiceTerms,
): ControlRow {
  const title = isCold ? `${name}, from the start` : name;
  return {
    name: title,
    family,
    scenario: scenarioOf(title, {
      limit: { kind: 'workers', ...workers },
      offered,
      duration: DURATION,
      warmup: isCold ? 0 : 20_000,
      upstream: { latency: { kind: 'lognormal', mean }, ...upstream },
      ...(clients === undefined ? {} : { clients }),
    }),
    goals: [],
    comparesWithOracle: true,
    ...(upstream.steps === undefined ? {} : { changeAt: HALF, changeTo: DURATION }),
  };
}

/** Services that queue, at twice their capacity. */
export function overloadedServices(): ControlRow[] {
  const pool = { connections: 8, latency: { kind: 'lognormal', mean: 20 } as const };
  const services: readonly Omit<ServiceTerms, 'isCold'>[] = [
    { name: '8 workers of 50 ms', workers: { workers: 8 }, mean: 50, offered: 320 },
    {
      name: '8 workers of 50 ms, constant',
      workers: { workers: 8 },
      mean: 50,
      offered: 320,
      upstream: { latency: { kind: 'constant', mean: 50 } },
    },
    {
      name: '8 workers of 50 ms, exponential',
      workers: { workers: 8 },
      mean: 50,
      offered: 320,
      upstream: { latency: { kind: 'exponential', mean: 50 } },
    },
    { name: '2 workers of 200 ms', workers: { workers: 2 }, mean: 200, offered: 20 },
    { name: '4 shared workers of 100 ms', workers: { workers: 4, discipline: 'sharing' }, mean: 100, offered: 80 },
    {
      name: '16 workers of 50 ms, thrashing above 32',
      workers: { workers: 16, thrashing: { above: 32, slowdown: 0.02 } },
      mean: 50,
      offered: 640,
    },
    { name: '40 workers of 50 ms, 8 connections of 20 ms', workers: { workers: 40, pool }, mean: 50, offered: 800 },
    {
      name: '8 workers of 50 ms, 16 from half time on',
      workers: { workers: 8 },
      mean: 50,
      offered: 640,
      upstream: { steps: [{ at: HALF, limit: 16 }] },
    },
  ];
  return [
    ...services.map((terms) => serviceRow('service, load 2', terms)),
    ...services
      .filter(({ upstream }) => upstream === undefined)
      .map((terms) => serviceRow('service, load 2, from the start', { ...terms, isCold: true })),
  ];
}

/** Grows from 1.1 to 1.5 in steps of 20 s. */
const DRIFT: readonly Slowdown[] = [1.1, 1.2, 1.3, 1.4, 1.5].map((factor, i) => ({
  factor,
  from: 20_000 * (i + 1),
  ...(factor === 1.5 ? {} : { to: 20_000 * (i + 2) }),
}));

const SLOW_PATH = '/reports';

/** Services whose latency varies or rises without an overload: a controller should do nothing. */
export function sufficientServices(): ControlRow[] {
  const slowedBy = (slowdowns: readonly Slowdown[]): ServiceTerms['workers'] => ({ workers: 16, slowdowns });
  const services: readonly ServiceTerms[] = [
    {
      name: 'lognormal latency, sigma 1',
      workers: { workers: 16 },
      mean: 50,
      offered: 0.7 * 320,
      upstream: { latency: { kind: 'lognormal', mean: 50, sigma: 1 } },
    },
    {
      // 95 ms on average: 168 requests a second at most.
      name: 'one in ten requests takes ten times as long',
      workers: { workers: 16 },
      mean: 50,
      offered: 0.6 * 168,
      upstream: { latencies: [{ path: [SLOW_PATH], latency: { kind: 'lognormal', mean: 500 } }] },
      clients: [
        { ...CLIENTS, name: 'pages', count: 9, rate: 0.6 * 16.8 },
        { ...CLIENTS, name: 'reports', count: 1, rate: 0.6 * 16.8, path: SLOW_PATH },
      ],
    },
    {
      name: 'pauses of 200 ms every 5 s',
      workers: slowedBy([{ factor: 1e6, every: 5000, lasting: 200 }]),
      mean: 50,
      offered: 0.6 * 320,
    },
    {
      name: '1.5 times slower from half time on',
      workers: slowedBy([{ factor: 1.5, from: HALF }]),
      mean: 50,
      offered: 0.5 * 320,
    },
    { name: 'slower by and by, up to 1.5 times', workers: slowedBy(DRIFT), mean: 50, offered: 0.5 * 320 },
    {
      name: 'five times slower in the first 10 s',
      workers: slowedBy([{ factor: 5, to: 10_000 }]),
      mean: 50,
      offered: 0.5 * 320,
      isCold: true,
    },
  ];
  return services.map((terms) => serviceRow('service, load 0.5 to 0.7', terms));
}
