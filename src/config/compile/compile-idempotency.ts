import type { Mode } from '../../core/exchange/attempt-outcome.ts';
import type { UpstreamConfig } from '../schema/config-schema.ts';
import { listOf } from '../values/one-or-many.ts';
import type { AccountPart } from '../../http/idempotency/key-account.ts';
import type { Idempotency } from '../../http/idempotency/idempotency-key.ts';
import { makePathPattern, segmentsOf } from '../../core/http-semantics/path-pattern.ts';
import { mergeSlashes } from '../../http/request/match-path.ts';

type IdempotencyConfig = UpstreamConfig['idempotency'];

/** @param mode where we observe, nothing is added to what passes */
export function compileIdempotency(config: IdempotencyConfig, mode: Mode): Idempotency {
  const { header, jsonField, account, replayedHeader, generate, concurrent, ttl } = config;
  const parts = compileAccount(account);
  return {
    header: header === false ? undefined : { name: header, lower: header.toLowerCase() },
    jsonField: jsonField?.split('.'),
    account: parts,
    accountHeaders: new Set(parts.map((part) => part.header)),
    replayedHeader: replayedHeader === false ? undefined : replayedHeader.toLowerCase(),
    generates: generate && mode === 'enforce',
    concurrent,
    ttlOf: ttl === undefined ? undefined : compileTtl(ttl),
  };
}

function compileAccount(account: IdempotencyConfig['account']): readonly AccountPart[] {
  if (account === 'none') return [];
  return listOf(account).map((source) => ({ ...source, header: source.header.toLowerCase() }));
}

/** Whether writes have keys: of each is known whose turn it is with it, and whether it is open what came of it. */
export function claimsKeys({ header, jsonField }: IdempotencyConfig): boolean {
  return header !== false || jsonField !== undefined;
}

function compileTtl(ttl: NonNullable<IdempotencyConfig['ttl']>): NonNullable<Idempotency['ttlOf']> {
  if (typeof ttl === 'number') return () => ttl;
  const rules = ttl.map((rule) => ({ ...rule, pattern: makePathPattern(rule.path) }));
  const ttlOf = (method: string, path: string) => {
    const segments = segmentsOf(path);
    return rules.find((rule) => (rule.method ?? method) === method && rule.pattern.match(segments) !== undefined)?.ttl;
  };
  // Many servers read doubled slashes as one: of two that may hold, the shorter one is safe.
  return (method, path) => {
    const written = ttlOf(method, path);
    const merged = path.includes('//') ? ttlOf(method, mergeSlashes(path)) : undefined;
    return merged === undefined ? written : Math.min(merged, written ?? merged);
  };
}
