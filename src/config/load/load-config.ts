import { checkPem } from '../rules/certificate-rules.ts';
import type { Checked, Written } from '../rules/rule-finding.ts';
import { crossCheck } from '../rules/config-rules.ts';
import { draft } from './partial-config.ts';
import type { Given } from './setting-overrides.ts';
import { lay } from './setting-overrides.ts';
import { valueAt } from './schema-issues.ts';
import { jsonSchema } from '../schema/json-schema.ts';
import { KnownKeys } from './known-keys.ts';
import type { Mistake, Path } from './mistakes.ts';
import { layPreset } from '../presets/preset.ts';
import type { Drafted, Document } from './read-document.ts';
import { readDocument } from './read-document.ts';
import type { Config } from '../schema/config-schema.ts';
import { ConfigSchema } from '../schema/config-schema.ts';
import type { Surroundings } from './substitute.ts';

export type Loaded =
  | (Omit<Extract<Document<Config>, { readonly kind: 'ok' }>, 'value'> & { readonly config: Config })
  | Extract<Document<Config>, { readonly kind: 'mistakes' }>;

/** Keys that the language of the configuration has kept a place for, and that do nothing yet. */
const KEYS = new KnownKeys(jsonSchema, []);

/**
 * Reads a configuration, as `readDocument`.
 * @param given settings of flags and variables, over those of the text
 * @param alsoCheck what else has to hold where it is used
 */
export function loadConfig(
  text: string,
  file: string,
  surroundings: Surroundings,
  given: readonly Given[] = [],
  alsoCheck: (written: Written) => Iterable<Checked> = () => [],
): Loaded {
  function* check(root: object, places: Drafted['places']): Generator<Checked> {
    const parts = draft(root);
    const written: Written = (path) => places.has(path);
    yield* crossCheck(parts, written);
    yield* alsoCheck(written);
    yield* checkPem(parts, surroundings.readFile);
  }
  const language = { schema: ConfigSchema, keys: KEYS, check };
  const read = readDocument(text, file, surroundings, language, (drafted) => {
    const refused = given.flatMap((setting) => layOver(drafted, setting));
    const names = Object.keys(valueAt(drafted.root, ['upstreams']) ?? {});
    const lost = names.flatMap((name) => layPreset(drafted, ['upstreams', name], surroundings.readFile));
    implyRoute(drafted.root);
    return [...refused, ...lost];
  });
  if (read.kind === 'mistakes') return read;
  const { value: config, ...rest } = read;
  return { ...rest, config };
}

function layOver({ root, places, substituted }: Drafted, setting: Given): Mistake[] {
  const laid = lay(root, setting);
  if ('refused' in laid) {
    const nowhere = { line: undefined, column: undefined, path: '', suggestion: undefined };
    return [{ ...nowhere, file: setting.source, message: laid.refused }];
  }
  for (const path of laid.paths) {
    places.give(path, setting.source);
    for (const key of [...substituted.keys()]) if (startsWith(key, path)) substituted.delete(key);
  }
  return [];
}

/** With one upstream and no routes there is nothing to choose. */
function implyRoute(root: object): void {
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
