import type { JsonSchema } from '../schema/json-schema.ts';
import { isSchema } from '../schema/json-schema.ts';
import type { Path } from './mistakes.ts';
import { suggest } from '../values/suggest.ts';

/** The keys of a language: those there are, and those it keeps a place for. */
export class KnownKeys {
  readonly #schema: () => JsonSchema;
  readonly #notYet: readonly Path[];

  /**
   * @param schema asked for when it is needed: making it is dear
   * @param notYet keys that do nothing yet, such as `routes.*.poll`; `*` is any step
   */
  constructor(schema: () => JsonSchema, notYet: readonly string[]) {
    this.#schema = schema;
    this.#notYet = notYet.map((keys) => keys.split('.'));
  }

  /** Whether this key is no typing error, but ahead of its time. */
  isNotYet(path: Path): boolean {
    return this.#notYet.some(
      (keys) => keys.length === path.length && keys.every((key, i) => key === '*' || key === path[i]),
    );
  }

  /** What a key goes with that is known here, but not beside what stands here: `kind: gcra or bucket`. */
  goesWith(path: Path, key: string): string | undefined {
    const marks = this.#schemasAt(path)
      .filter((schema) => key in properties(schema))
      .flatMap((schema) => Object.entries(properties(schema)))
      .flatMap(([name, value]) =>
        isSchema(value) && 'const' in value ? [[name, String(value['const'])] as const] : [],
      );
    const [name] = marks[0] ?? [];
    return name === undefined ? undefined : `${name}: ${marks.map(([, value]) => value).join(' or ')}`;
  }

  /** What an unknown key may have been meant to be: a key beside it, or the same one further down, such as `retry.attempts`. */
  suggest(path: Path, key: string): string | undefined {
    const here = this.#schemasAt(path);
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
  #schemasAt(path: Path): readonly JsonSchema[] {
    let schemas = alternatives(this.#schema());
    for (const step of path) {
      schemas = schemas.flatMap((schema) => {
        const next =
          typeof step === 'number' ? schema['items'] : (properties(schema)[step] ?? schema['additionalProperties']);
        return alternatives(next);
      });
    }
    return schemas;
  }
}

function alternatives(schema: unknown): readonly JsonSchema[] {
  if (!isSchema(schema)) return [];
  const choices: unknown = schema['anyOf'] ?? schema['oneOf'];
  return Array.isArray(choices) ? choices.flatMap(alternatives) : [schema];
}

function properties(schema: JsonSchema): JsonSchema {
  return isSchema(schema['properties']) ? schema['properties'] : {};
}
