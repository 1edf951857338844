import { Document, isCollection, isNode, isScalar, visit } from 'yaml';
import { z } from 'zod';
import type { BackOffOptions } from '../../core/backoff/strategies.ts';
import { makeBackOff } from '../../core/backoff/strategies.ts';
import type { Path } from './mistakes.ts';
import { pathKey } from './source-map.ts';
import { maskPassword } from '../values/redis-url.ts';
import type { Config, UpstreamConfig } from '../schema/config-schema.ts';
import { ConfigSchema } from '../schema/config-schema.ts';

const MASK = '***';

/** Encoding only reads, so it takes a configuration that nobody may change. */
const schema: z.ZodType<Config> = ConfigSchema;

/**
 * The configuration in effect as YAML, defaults filled in, units as people write them. What came from a variable or a
 * file is printed as it was written, `${NAME}`; a secret that stands in the file itself, as `***`.
 * @param substituted as `loadConfig` returns it
 * @param remarks on settings, in a word or two: a comment behind each
 */
export function printEffective(
  config: Config,
  substituted: ReadonlyMap<string, string> = new Map(),
  remarks: readonly { readonly path: Path; readonly text: string }[] = [],
): string {
  const document = new Document(describeEffective(config, substituted));
  visit(document, {
    Seq(_, list) {
      list.flow = list.items.every((item) => isScalar(item));
    },
  });
  for (const { path, text } of remarks) {
    const node = document.getIn(path, true);
    if (!isNode(node)) continue;
    if (isCollection(node) && node.flow !== true) node.commentBefore = ` ${text}`;
    else node.comment = ` ${text}`;
  }
  return document.toString({ lineWidth: 0, flowCollectionPadding: false });
}

/** As people write it, secrets and all. */
export function encodeEffective(config: Config): unknown {
  return z.encode(schema, completeBackOffs(config));
}

/** As `printEffective`, as data. */
export function describeEffective(
  config: Config,
  substituted: ReadonlyMap<string, string> = new Map(),
): Readonly<Record<string, unknown>> {
  const written = conceal(encodeEffective(config), [], substituted);
  return Object.fromEntries(Object.entries(written ?? {}));
}

/** With the options that each upstream's backoff has in effect. */
function completeBackOffs(config: Config): Config {
  const upstreams = Object.entries(config.upstreams).map(([name, upstream]): [string, UpstreamConfig] => {
    const { strategy } = upstream.retry.backOff;
    const options: BackOffOptions = makeBackOff(upstream.retry.backOff).options;
    return [name, { ...upstream, retry: { ...upstream.retry, backOff: { strategy, ...options } } }];
  });
  return { ...config, upstreams: Object.fromEntries(upstreams) };
}

/** The same with masks: a secret that stands in the file itself is `***`, what came from elsewhere is as it was written. */
export function conceal(value: unknown, path: Path, substituted: ReadonlyMap<string, string>): unknown {
  const written = substituted.get(pathKey(path));
  if (typeof value === 'string' && path[0] === 'state' && path[1] === 'url') return maskPassword(written ?? value);
  if (written !== undefined) return written;
  if (typeof value === 'string') return isSecret(path, value) ? MASK : value;
  if (Array.isArray(value)) return value.map((item, i) => conceal(item, [...path, i], substituted));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, conceal(inner, [...path, key], substituted)]),
  );
}

/** Secrets by their place; PEM text; clients' keys; and what a class looks for in headers that carry credentials. */
function isSecret(path: Path, value: string): boolean {
  const key = String(path.at(-1) ?? '');
  if (path.length === 1 && key === 'secret') return true;
  if (key === 'token' && (path[0] === 'admin' || path[0] === 'check')) return true;
  if (path[0] === 'state' && /password$/i.test(key)) return true;
  if (path.at(-2) === 'tls') return key === 'passphrase' || value.includes('PRIVATE KEY');
  if (path[0] === 'clients' && path[1] === 'names') return true;
  if (path[0] !== 'clients' || path[3] !== 'match') return false;
  return path[4] === 'key' || /auth|key|token|secret|cookie|signature/i.test(key);
}
