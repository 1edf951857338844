/** What a configuration says of answers and of paths: for the proxy. */
import { listOf } from '../values/one-or-many.ts';
import type { RetryConfig, ThrottleConfig } from '../schema/config-schema.ts';
import { makePathPattern } from '../../core/http-semantics/path-pattern.ts';
import { makeGlob } from '../../http/request/glob.ts';
import type { Kind } from '../../http/request/replay-safety.ts';
import { makeTellNature } from '../../http/request/replay-safety.ts';
import type { TellNature } from '../../http/request/snapshot-types.ts';
import type { Rule } from '../../http/upstream/throttle-rules.ts';
import { Throttle } from '../../http/upstream/throttle-rules.ts';

export function compileThrottle(config: ThrottleConfig | undefined): Throttle | undefined {
  if (config === undefined) return undefined;
  const { reasonHeader, verdictHeader, codeField, answers } = config;
  return new Throttle({
    reasonHeader: reasonHeader?.toLowerCase(),
    verdictHeader: verdictHeader?.toLowerCase(),
    codeFields: codeField === undefined ? [] : listOf(codeField).map((field) => field.split('.')),
    rules: answers.map(compileRule),
  });
}

function compileRule(rule: ThrottleConfig['answers'][number]): Rule {
  const { status, method, path, header = {}, reason, code, is, limit, wait } = rule;
  return {
    statuses: status === undefined ? undefined : new Set(listOf(status)),
    methods: method === undefined ? undefined : new Set(listOf(method)),
    paths: path === undefined ? undefined : listOf(path).map(makePathPattern),
    headers: Object.entries(header).map(([name, glob]) => [name.toLowerCase(), makeGlob(glob)] as const),
    reasons: reason === undefined ? undefined : listOf(reason).map(makeGlob),
    codes: code === undefined ? undefined : listOf(code).map(makeGlob),
    is,
    limit,
    waits: wait === undefined ? [] : listOf(wait).map(compileWait),
  };
}

type Wait = Rule['waits'][number];

function compileWait(wait: Wait): Wait {
  return typeof wait === 'number' ? wait : { ...wait, header: wait.header.toLowerCase() };
}

/** Undefined where nothing is known of any path. */
export function compileNature({ safePaths, neverPaths }: RetryConfig): TellNature | undefined {
  return makeTellNature([
    // A DELETE is no read, wherever it goes.
    ...safePaths.map((each) => compileKind('safe', each, ['POST'])),
    ...neverPaths.map((each) => compileKind('never', each, undefined)),
  ]);
}

type PathRule = RetryConfig['safePaths'][number];

function compileKind(nature: Kind['nature'], written: PathRule, usual: readonly string[] | undefined): Kind {
  const { path, method = usual } = typeof written === 'string' ? { path: written } : written;
  return {
    nature,
    methods: method === undefined ? undefined : new Set(listOf(method)),
    paths: listOf(path).map(makePathPattern),
  };
}
