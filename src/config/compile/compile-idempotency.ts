import type { Config, UpstreamConfig } from '../schema/config-schema.ts';
import { keyScopeOf, namingIn } from '../schema/key-scope.ts';
import { toList } from '../values/one-or-many.ts';
import type { KeyAccountSource } from '../../http/idempotency/key-account.ts';
import type { IdempotencySettings } from '../../http/idempotency/idempotency-types.ts';
import { makePathPattern, segmentsOf } from '../../core/http-semantics/path-pattern.ts';
import { mergeSlashes } from '../../http/request/match-path.ts';

type IdempotencyConfig = UpstreamConfig['idempotency'];

/**
 * @param config with the mode of the upstream: in observe mode, no key is generated, and no response is kept
 * @param endpointCount of the upstream
 */
export function compileIdempotency(
  upstream: Pick<UpstreamConfig, 'accounts' | 'idempotency'>,
  config: Pick<Config, 'mode' | 'clients' | 'upstreams'>,
  endpointCount: number,
): IdempotencySettings {
  const { mode } = config;
  const { idempotency } = upstream;
  const { header, jsonField, account, replayedHeader, generate, onStoreLost, ttl, replayAnswers } = idempotency;
  const parts = compileAccountSources(account);
  return {
    header: header === false ? undefined : { name: header, lower: header.toLowerCase() },
    jsonField: jsonField?.split('.'),
    account: parts,
    accountHeaders: new Set(parts.map((part) => part.header)),
    replayedHeader: replayedHeader === false ? undefined : replayedHeader.toLowerCase(),
    keyScope: keyScopeOf(upstream, namingIn(config)),
    generates: generate && mode === 'enforce',
    concurrent: effectiveConcurrent(idempotency, endpointCount),
    onStoreLost,
    keepResponsesFor: mode === 'enforce' ? replayAnswers : undefined,
    ttlOf: ttl === undefined ? undefined : compileTtl(ttl),
  };
}

/** Of endpoints that do not share keys, each request of a write has to know which one the others were sent to. */
export function effectiveConcurrent(
  { concurrent, sharesKeys }: Pick<IdempotencyConfig, 'concurrent' | 'sharesKeys'>,
  endpointCount: number,
): IdempotencyConfig['concurrent'] {
  return concurrent === 'pass' && endpointCount > 1 && !sharesKeys ? 'wait' : concurrent;
}

function compileAccountSources(account: IdempotencyConfig['account']): readonly KeyAccountSource[] {
  if (account === 'none') return [];
  return toList(account).map((source) => ({ ...source, header: source.header.toLowerCase() }));
}

function compileTtl(ttl: NonNullable<IdempotencyConfig['ttl']>): NonNullable<IdempotencySettings['ttlOf']> {
  if (typeof ttl === 'number') return () => ttl;
  const rules = ttl.map((rule) => ({ ...rule, pattern: makePathPattern(rule.path) }));
  const ttlOf = (method: string, path: string) => {
    const segments = segmentsOf(path);
    return rules.find((rule) => (rule.method ?? method) === method && rule.pattern.match(segments) !== undefined)?.ttl;
  };
  // Many servers read doubled slashes as one: of two TTLs that may apply, the shorter one is safe.
  return (method, path) => {
    const written = ttlOf(method, path);
    const merged = path.includes('//') ? ttlOf(method, mergeSlashes(path)) : undefined;
    return merged === undefined ? written : Math.min(merged, written ?? merged);
  };
}
