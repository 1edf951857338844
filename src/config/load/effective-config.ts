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

/** Typed for a readonly configuration: encoding does not change it. */
const schema: z.ZodType<Config> = ConfigSchema;

/**
 * The configuration in effect as YAML, with defaults filled in and units as written in a file. A value from a variable or a
 * file is printed as its reference, `${NAME}`; a secret written in the file itself as `***`.
 * @param substituted as `loadConfig` returns it
 * @param remarks short comments on settings, printed after each
 */
export function formatEffectiveConfig(
  config: Config,
  substituted: ReadonlyMap<string, string> = new Map(),
  remarks: readonly { readonly path: Path; readonly text: string }[] = [],
): string {
  const document = new Document(effectiveConfigData(config, substituted));
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

/** The configuration as it could be written in a file, secrets included. */
export function encodeConfig(config: Config): unknown {
  return z.encode(schema, fillBackOffDefaults(config));
}

/** As `formatEffectiveConfig`, as data. */
export function effectiveConfigData(
  config: Config,
  substituted: ReadonlyMap<string, string> = new Map(),
): Readonly<Record<string, unknown>> {
  const written = maskSecrets(encodeConfig(config), [], substituted);
  return Object.fromEntries(Object.entries(written ?? {}));
}

/** Fills in the default options of the backoff of each upstream. */
function fillBackOffDefaults(config: Config): Config {
  const upstreams = Object.entries(config.upstreams).map(([name, upstream]): [string, UpstreamConfig] => {
    const { strategy } = upstream.retry.backOff;
    const options: BackOffOptions = makeBackOff(upstream.retry.backOff).options;
    return [name, { ...upstream, retry: { ...upstream.retry, backOff: { strategy, ...options } } }];
  });
  return { ...config, upstreams: Object.fromEntries(upstreams) };
}

/** Masks secrets: one written in the file itself becomes `***`, one from a variable or a file its reference. */
export function maskSecrets(value: unknown, path: Path, substituted: ReadonlyMap<string, string>): unknown {
  const written = substituted.get(pathKey(path));
  if (typeof value === 'string' && path[0] === 'state' && path[1] === 'url') return maskPassword(written ?? value);
  if (written !== undefined) return written;
  if (typeof value === 'string') return isSecret(path, value) ? MASK : value;
  if (Array.isArray(value)) return value.map((item, i) => maskSecrets(item, [...path, i], substituted));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, maskSecrets(inner, [...path, key], substituted)]),
  );
}

/** Secrets by path, those of signatures and accounts among them; private keys as PEM text; client keys; and values that a class matches in headers with credentials. */
function isSecret(path: Path, value: string): boolean {
  const key = String(path.at(-1) ?? '');
  if (path.length === 1 && key === 'secret') return true;
  if (key === 'token' && (path[0] === 'admin' || path[0] === 'check')) return true;
  if (path[0] === 'state' && /password$/i.test(key)) return true;
  if (path[0] === 'upstreams' && path[2] === 'accounts') return key === 'value';
  if (path[0] === 'routes' && isSignatureSecret(path.slice(2))) return true;
  if (path.at(-2) === 'tls') return key === 'passphrase' || value.includes('PRIVATE KEY');
  if (path[0] === 'clients' && path[1] === 'names') return true;
  if (path[0] !== 'clients' || path[3] !== 'match') return false;
  return path[4] === 'key' || /auth|key|token|secret|cookie|signature/i.test(key);
}

/** @param path within a route */
function isSignatureSecret([first, second, third]: Path): boolean {
  if (first === 'deliver') return second === 'sign' && third === 'secrets';
  return first === 'verify' && second === 'secrets';
}
