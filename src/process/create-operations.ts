import { describeEffective } from '../config/load/effective-config.ts';
import type { Mistake } from '../config/load/mistakes.ts';
import type { Config } from '../config/schema/config-schema.ts';
import type { Validation } from '../admin/api/admin-operations.ts';
import type { Facts, StationOperationsParts } from '../admin/operations/process-group-operations.ts';
import { StationOperations } from '../admin/operations/process-group-operations.ts';
import type { Reloads } from './config-reloads.ts';

export interface OwnOperationsParts extends Pick<StationOperationsParts, 'clock' | 'drain' | 'listen' | 'stations'> {
  readonly phase: () => Facts['phase'];
  readonly version: string;
  /** Processes that serve. */
  readonly workers: number;
  readonly reloads: Reloads;
}

/** What operators see and do, with what the configuration in effect says of it. */
export function makeOperations(parts: OwnOperationsParts): StationOperations {
  const { stations, clock, listen, drain, phase, version, workers, reloads } = parts;
  const wallClock = (): number => Date.now();
  const startedAt = wallClock();
  return new StationOperations({
    stations,
    clock,
    wallClock,
    facts: () => {
      const { mode, state } = reloads.current.config;
      const { loadedAt: configLoadedAt, last: lastReload } = reloads;
      return { mode, store: state.store, version, workers, startedAt, configLoadedAt, lastReload, phase: phase() };
    },
    maxRateOf: (upstream) => reloads.current.config.upstreams[upstream]?.rateLimit.maxRate,
    config: () => describeEffective(reloads.current.config, reloads.current.substituted),
    listen,
    drain,
    validate: (text) => validate(reloads, text),
  });
}

/** Whether all clients have one weight. */
export function areEqual({ clients }: Config): boolean {
  return Object.values(clients.classes).every(({ weight }) => weight === 1);
}

function validate(reloads: Reloads, text: string): Validation {
  const told = reloads.validate(text);
  if (told.kind === 'mistakes') return { kind: 'mistakes', mistakes: told.mistakes.map(tell) };
  return {
    kind: 'valid',
    warnings: told.warnings.map((warning) => `${tell(warning).place} ${tell(warning).message}`),
  };
}

function tell({ line, column, path, message, suggestion }: Mistake): {
  readonly place: string;
  readonly message: string;
} {
  const where = line === undefined ? '' : `${line}:${column}`;
  return {
    place: [where, path].filter((part) => part !== '').join(' '),
    message: suggestion === undefined ? message : `${message} (did you mean ${suggestion}?)`,
  };
}
