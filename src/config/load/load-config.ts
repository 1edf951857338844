import { checkAuthFiles } from '../rules/client-auth-rules.ts';
import { checkCertificates } from '../rules/certificate-rules.ts';
import type { RuleFinding, IsWritten } from '../rules/rule-finding.ts';
import { checkConfigRules } from '../rules/config-rules.ts';
import { parsePartialConfig } from './partial-config.ts';
import type { SettingOverride } from './setting-overrides.ts';
import { applySettingOverride } from './setting-overrides.ts';
import { valueAt } from '../values/plain-object.ts';
import { configJsonSchema } from '../schema/json-schema.ts';
import { KnownKeys } from './known-keys.ts';
import { moveMisplacedSettings } from './misplaced-settings.ts';
import type { Mistake, Path } from './mistakes.ts';
import { applyPreset } from '../presets/preset.ts';
import type { RawDocument, DocumentResult } from './read-document.ts';
import { readDocument } from './read-document.ts';
import type { Config } from '../schema/config-schema.ts';
import { ConfigSchema } from '../schema/config-schema.ts';
import type { ConfigEnvironment } from './substitute.ts';

export type LoadResult =
  | (Omit<Extract<DocumentResult<Config>, { readonly kind: 'ok' }>, 'value'> & { readonly config: Config })
  | Extract<DocumentResult<Config>, { readonly kind: 'mistakes' }>;

/** No key is reserved for later at present. */
const KEYS = new KnownKeys(
  configJsonSchema,
  new Map(
    ['quota', 'quota.*', 'perClient.quota', 'perClient.quota.*'].flatMap((quota) => [
      [`clients.classes.*.${quota}.pace`, 'quotas of clients have no pace: limit their rate with maxRate'],
      [
        `clients.classes.*.${quota}.reserve`,
        'quotas of clients have no reserve: all clients of a class have one weight',
      ],
    ]),
  ),
);

/**
 * Reads a configuration: flags and variables over the file over presets over defaults. Never throws.
 * @param overrides settings from flags and variables, which take precedence over the file
 * @param alsoCheck further rules of the caller
 */
export function loadConfig(
  text: string,
  file: string,
  environment: ConfigEnvironment,
  overrides: readonly SettingOverride[] = [],
  alsoCheck: (isWritten: IsWritten) => Iterable<RuleFinding> = () => [],
): LoadResult {
  function* check(root: object, sourceMap: RawDocument['sourceMap']): Generator<RuleFinding> {
    const partial = parsePartialConfig(root);
    const isWritten: IsWritten = (path) => sourceMap.isWritten(path);
    yield* checkConfigRules(partial, isWritten);
    yield* alsoCheck(isWritten);
    yield* checkCertificates(partial, environment.readFile);
    yield* checkAuthFiles(partial, environment.readFile);
  }
  const language = { schema: ConfigSchema, keys: KEYS, check };
  const read = readDocument(text, file, environment, language, (raw) => {
    // The schema is strict: a misplaced setting does not pass it.
    const misplaced = ConfigSchema.safeParse(raw.root).success ? [] : moveMisplacedSettings(raw, KEYS);
    const rejected = overrides.flatMap((setting) => mergeOverride(raw, setting));
    const names = Object.keys(valueAt(raw.root, ['upstreams']) ?? {});
    const presetMistakes = names.flatMap((name) => applyPreset(raw, ['upstreams', name], environment.readFile));
    addImpliedRoute(raw.root);
    return [...misplaced, ...rejected, ...presetMistakes];
  });
  if (read.kind === 'mistakes') return read;
  const { value: config, ...rest } = read;
  return { ...rest, config };
}

function mergeOverride({ root, sourceMap, substituted }: RawDocument, setting: SettingOverride): Mistake[] {
  const result = applySettingOverride(root, setting);
  if ('problem' in result) {
    const noPosition = { line: undefined, column: undefined, path: '', suggestion: undefined };
    return [{ ...noPosition, file: setting.source, message: result.problem }];
  }
  for (const path of result.paths) {
    sourceMap.setOverride(path, setting.source);
    for (const key of [...substituted.keys()]) if (startsWith(key, path)) substituted.delete(key);
  }
  return [];
}

/** With one upstream and no routes, all requests go to that upstream. */
function addImpliedRoute(root: object): void {
  const routes = valueAt(root, ['routes']);
  const [name, ...others] = Object.keys(valueAt(root, ['upstreams']) ?? {});
  if (name === undefined || others.length > 0) return;
  if (routes === undefined || (Array.isArray(routes) && routes.length === 0)) {
    Reflect.set(root, 'routes', [{ path: '/', upstream: name }]);
  }
}

function startsWith(key: string, path: Path): boolean {
  const parsed: unknown = JSON.parse(key);
  return Array.isArray(parsed) && path.every((step, i) => parsed[i] === step);
}
