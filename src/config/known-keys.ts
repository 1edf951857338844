import type { JsonSchema } from './json-schema.ts';
import { isSchema, jsonSchema } from './json-schema.ts';
import type { Path } from './mistakes.ts';
import { suggest } from './suggest.ts';

/** Keys that the language of the configuration has kept a place for, and that do nothing yet. `*` is any step. */
const NOT_YET: readonly Path[] = [
  'workers',
  'state',
  'listen.tls',
  'upstreams.*.urls',
  'upstreams.*.provider',
  'upstreams.*.limits',
  'upstreams.*.idempotency.jsonField',
  'upstreams.*.idempotency.ttl',
  'upstreams.*.idempotency.generate',
  'routes.*.poll',
  'routes.*.check',
  'clients.classes.*.maxRate',
].map((keys) => keys.split('.'));

/** Whether this key is no typing error, but ahead of its time. */
export function isNotYet(path: Path): boolean {
  return NOT_YET.some((keys) => keys.length === path.length && keys.every((key, i) => key === '*' || key === path[i]));
}

/** What an unknown key may have been meant to be: a key beside it, or the same one further down, such as `retry.attempts`. */
export function suggestKey(path: Path, key: string): string | undefined {
  const here = schemasAt(path);
  const beside = here.flatMap((schema) => Object.entries(properties(schema)));
  const near = suggest(
    key,
    // It may be known beside another `kind`.
    beside.map(([name]) => name).filter((name) => name !== key),
  );
  if (near !== undefined) return near;
  const [below] = beside.filter(([, schema]) => alternatives(schema).some((one) => key in properties(one)));
  return below === undefined ? undefined : `${below[0]}.${key}`;
}

/** Every schema that what stands at `path` may follow. */
function schemasAt(path: Path): readonly JsonSchema[] {
  let schemas = alternatives(jsonSchema());
  for (const step of path) {
    schemas = schemas.flatMap((schema) => {
      const next =
        typeof step === 'number' ? schema['items'] : (properties(schema)[step] ?? schema['additionalProperties']);
      return alternatives(next);
    });
  }
  return schemas;
}

function alternatives(schema: unknown): readonly JsonSchema[] {
  if (!isSchema(schema)) return [];
  const choices: unknown = schema['anyOf'] ?? schema['oneOf'];
  return Array.isArray(choices) ? choices.flatMap(alternatives) : [schema];
}

function properties(schema: JsonSchema): JsonSchema {
  return isSchema(schema['properties']) ? schema['properties'] : {};
}
