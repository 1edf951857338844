import type { EnforcementMode } from '../../core/admission/gate-decision.ts';
import type { TimeSeries } from './counter-set.ts';
import type { MetricFamily, MetricSample } from './exposition/metric-family.ts';

export interface ProcessMetricsOptions {
  /** Configured upstreams: each has series from the start. Others get theirs when first seen. */
  readonly upstreams: Iterable<string>;
  /** Upstreams whose certificate is not verified; none unless given. */
  readonly insecure?: ReadonlySet<string>;
  readonly replayBufferBytes: () => number;
  /** Approximate memory of recorded explanations, in bytes; 0 if none are kept. */
  readonly explanationBytes?: () => number;
  /** The share of new requests that this process rejects because it is overloaded, 0 to 1. */
  readonly shedShare?: () => number;
  readonly build: { readonly version: string };
  readonly mode: EnforcementMode;
  /** Upstreams in observe mode; none unless given. */
  readonly observed?: ReadonlySet<string>;
}

export interface WorkerCounts {
  readonly serving: number;
  /** Workers that had to be replaced. */
  readonly restarts: number;
}

const MODES: readonly EnforcementMode[] = ['enforce', 'observe'];

/** The metrics of one process as a whole: its memory, its overload, its version and mode. */
export function defineProcessMetrics(options: ProcessMetricsOptions, overloads: TimeSeries): MetricFamily[] {
  return [
    {
      name: 'tidegate_replay_buffer_bytes',
      help: 'Memory of request bodies kept for retries.',
      type: 'gauge',
      samples: () => [{ labels: {}, value: options.replayBufferBytes() }],
    },
    {
      name: 'tidegate_story_bytes',
      help: 'Approximate memory of recorded explanations.',
      type: 'gauge',
      samples: () => [{ labels: {}, value: options.explanationBytes?.() ?? 0 }],
    },
    {
      name: 'tidegate_upstream_tls_insecure',
      help: '1 for an upstream whose certificate is not verified (tls.insecure), else 0.',
      type: 'gauge',
      aggregation: 'max',
      samples: () => markUpstreams(options.upstreams, options.insecure),
    },
    {
      name: 'tidegate_overload_shed_ratio',
      help: 'Ratio of new requests rejected because this process is overloaded.',
      type: 'gauge',
      aggregation: 'max',
      samples: () => [{ labels: {}, value: options.shedShare?.() ?? 0 }],
    },
    {
      name: 'tidegate_overload_episodes_total',
      help: 'Overload episodes of this process.',
      type: 'counter',
      samples: () => [overloads],
    },
    {
      name: 'tidegate_build_info',
      help: '1, labelled with the running version.',
      type: 'gauge',
      aggregation: 'max',
      samples: () => [{ labels: { version: options.build.version }, value: 1 }],
    },
    {
      name: 'tidegate_mode',
      help: '1 for the active mode: observe only if every upstream is in observe mode. In observe mode, decisions, retries, waits and client states are hypothetical.',
      type: 'gauge',
      aggregation: 'max',
      samples: () => MODES.map((mode) => ({ labels: { mode }, value: mode === options.mode ? 1 : 0 })),
    },
    {
      name: 'tidegate_upstream_observed',
      help: '1 for an upstream in observe mode, else 0. In observe mode, decisions, retries and waits are hypothetical.',
      type: 'gauge',
      aggregation: 'max',
      samples: () => markUpstreams(options.upstreams, options.observed),
    },
  ];
}

/** 1 for each upstream that is marked, 0 for the others. */
function markUpstreams(upstreams: Iterable<string>, marked: ReadonlySet<string> = new Set()): MetricSample[] {
  return [...upstreams].map((upstream) => ({ labels: { upstream }, value: marked.has(upstream) ? 1 : 0 }));
}

/** The metrics that the primary of several workers has about them. */
export function defineWorkerMetrics(readWorkers: () => WorkerCounts): MetricFamily[] {
  return [
    {
      name: 'tidegate_workers',
      help: 'Workers that serve.',
      type: 'gauge',
      aggregation: 'primary',
      samples: () => [{ labels: {}, value: readWorkers().serving }],
    },
    {
      name: 'tidegate_worker_restarts_total',
      help: 'Workers replaced after they exited.',
      type: 'counter',
      aggregation: 'primary',
      samples: () => [{ labels: {}, value: readWorkers().restarts }],
    },
  ];
}
