/** Compiles rules about responses and about paths: for the proxy. */
import { toList } from '../values/one-or-many.ts';
import type { RetryConfig, ThrottleConfig, UpstreamConfig } from '../schema/config-schema.ts';
import { makePathPattern } from '../../core/http-semantics/path-pattern.ts';
import { compileGlob } from '../../http/request/glob.ts';
import type { ReplaySafetyRule } from '../../http/request/replay-safety.ts';
import { makeReplaySafetyClassifier } from '../../http/request/replay-safety.ts';
import type { ClassifyReplaySafety } from '../../http/request/route.ts';
import type { ThrottleRule } from '../../http/upstream/throttle-rules.ts';
import { ThrottleRules } from '../../http/upstream/throttle-rules.ts';

export function compileThrottleRules({
  throttle,
  limits,
}: Pick<UpstreamConfig, 'throttle' | 'limits'>): ThrottleRules | undefined {
  if (throttle === undefined) return undefined;
  const { reasonHeader, verdictHeader, limitHeader, limitNames = {}, codeField, answers } = throttle;
  const configured = limits.map(({ name }) => name);
  // The preset may name limits that the file has replaced: to the gate, these are not configured.
  const named = Object.entries(limitNames).filter(([, name]) => name === '' || configured.includes(name));
  const unnamed = configured.filter((name) => !Object.hasOwn(limitNames, name));
  return new ThrottleRules({
    reasonHeader: reasonHeader?.toLowerCase(),
    verdictHeader: verdictHeader?.toLowerCase(),
    limitHeader: limitHeader?.toLowerCase(),
    limitNames: new Map([...named, ...unnamed.map((name) => [name, name] as const)]),
    codeFields: codeField === undefined ? [] : toList(codeField).map((field) => field.split('.')),
    rules: answers.map(compileThrottleRule),
  });
}

function compileThrottleRule(rule: ThrottleConfig['answers'][number]): ThrottleRule {
  const { status, method, path, header = {}, reason, code, is, limit, wait } = rule;
  return {
    statuses: status === undefined ? undefined : new Set(toList(status)),
    methods: method === undefined ? undefined : new Set(toList(method)),
    paths: path === undefined ? undefined : toList(path).map(makePathPattern),
    headers: Object.entries(header).map(([name, glob]) => [name.toLowerCase(), compileGlob(glob)] as const),
    reasons: reason === undefined ? undefined : toList(reason).map(compileGlob),
    codes: code === undefined ? undefined : toList(code).map(compileGlob),
    meaning: is,
    limit,
    waitSources: wait === undefined ? [] : toList(wait).map(compileWaitRule),
  };
}

type WaitRule = ThrottleRule['waitSources'][number];

function compileWaitRule(wait: WaitRule): WaitRule {
  return typeof wait === 'number' ? wait : { ...wait, header: wait.header.toLowerCase() };
}

/** Undefined if no path has a rule. */
export function compileReplaySafety({ safePaths, neverPaths }: RetryConfig): ClassifyReplaySafety | undefined {
  return makeReplaySafetyClassifier([
    // A rule without methods applies to POST only: a DELETE is never safe.
    ...safePaths.map((each) => compileReplaySafetyRule('safe', each, ['POST'])),
    ...neverPaths.map((each) => compileReplaySafetyRule('never', each, undefined)),
  ]);
}

type PathRule = RetryConfig['safePaths'][number];

function compileReplaySafetyRule(
  safety: ReplaySafetyRule['safety'],
  pathRule: PathRule,
  defaultMethods: readonly string[] | undefined,
): ReplaySafetyRule {
  const { path, method = defaultMethods } = typeof pathRule === 'string' ? { path: pathRule } : pathRule;
  return {
    safety,
    methods: method === undefined ? undefined : new Set(toList(method)),
    paths: toList(path).map(makePathPattern),
  };
}
