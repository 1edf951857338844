import { effectiveConfigData } from '../config/load/effective-config.ts';
import type { Mistake } from '../config/load/mistakes.ts';
import type { Config } from '../config/schema/config-schema.ts';
import { modeOfConfig, modeOfUpstream, observedUpstreams } from '../config/values/enforcement-mode.ts';
import type { ValidationReport } from '../admin/api/admin-operations.ts';
import type { ProcessFacts } from '../admin/operations/process-facts.ts';
import type { ProcessGroupOperationsParts } from '../admin/operations/process-group-operations.ts';
import { ProcessGroupOperations } from '../admin/operations/process-group-operations.ts';
import { hashClientName } from './find-client-quotas.ts';
import type { CertificateExpiries } from './certificates/certificate-expiries.ts';
import type { ConfigReloads } from './config-reloads.ts';

export interface CreateOperationsParts
  extends Pick<
    ProcessGroupOperationsParts,
    'clientQuotas' | 'clock' | 'deliveries' | 'drain' | 'keys' | 'listen' | 'processes'
  > {
  /** The key of the hashes of clients. */
  readonly secret: string;
  readonly phase: () => ProcessFacts['phase'];
  readonly version: string;
  /** Number of workers that serve. */
  readonly workers: number;
  readonly reloads: ConfigReloads;
  readonly certificates: Pick<CertificateExpiries, 'all'>;
}

/** The operations of the admin API, with the facts that the configuration in effect adds. */
export function createOperations(parts: CreateOperationsParts): ProcessGroupOperations {
  const {
    processes,
    keys,
    clientQuotas,
    secret,
    deliveries,
    clock,
    listen,
    drain,
    phase,
    version,
    workers,
    reloads,
    certificates,
  } = parts;
  const wallClock = (): number => Date.now();
  const startedAt = wallClock();
  return new ProcessGroupOperations({
    processes,
    keys,
    clientQuotas,
    hasClientQuotas: () => hasClientQuotas(reloads.current.config),
    hashClientName: (name) => hashClientName(secret, name),
    deliveries,
    clock,
    wallClock,
    facts: () => {
      const { config } = reloads.current;
      const { state, admin } = config;
      const { loadedAt: configLoadedAt, last: lastReload } = reloads;
      return {
        mode: modeOfConfig(config),
        observedUpstreams: observedUpstreams(config),
        store: state.store,
        certificates: certificates.all(),
        version,
        workers,
        startedAt,
        configLoadedAt,
        lastReload,
        phase: phase(),
        actionsDisabled: actionsDisabled(admin),
      };
    },
    isObserved: (upstream) => modeOfUpstream(reloads.current.config, upstream) === 'observe',
    maxRateOf: (upstream) => reloads.current.config.upstreams[upstream]?.rateLimit.maxRate,
    config: () => effectiveConfigData(reloads.current.config, reloads.current.substituted),
    listen,
    drain,
    validate: (text) => validateConfig(reloads, text),
  });
}

function hasClientQuotas({ clients }: Config): boolean {
  return Object.values(clients.classes).some(({ perClient }) => perClient?.quota !== undefined);
}

/** Actions need a token, except on a Unix socket. */
function actionsDisabled(admin: Config['admin']): string | undefined {
  if (admin !== false && (admin.token !== undefined || admin.listen.kind === 'unix')) return undefined;
  return 'Actions are disabled: set admin.token in the configuration.';
}

/** True if all client classes have weight 1. */
export function haveEqualWeights({ clients }: Config): boolean {
  return Object.values(clients.classes).every(({ weight }) => weight === 1);
}

function validateConfig(reloads: ConfigReloads, text: string): ValidationReport {
  const validation = reloads.validate(text);
  if (validation.kind === 'mistakes') return { kind: 'mistakes', mistakes: validation.mistakes.map(formatConfigError) };
  return {
    kind: 'valid',
    warnings: validation.warnings.map(
      (warning) => `${formatConfigError(warning).place} ${formatConfigError(warning).message}`,
    ),
  };
}

function formatConfigError({ line, column, path, message, suggestion }: Mistake): {
  readonly place: string;
  readonly message: string;
} {
  const where = line === undefined ? '' : `${line}:${column}`;
  return {
    place: [where, path].filter((part) => part !== '').join(' '),
    message: suggestion === undefined ? message : `${message} (did you mean ${suggestion}?)`,
  };
}
