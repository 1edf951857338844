import type { JsonSchema } from '../schema/json-schema.ts';
import { isMapping } from '../values/plain-object.ts';
import type { Path } from './mistakes.ts';
import { suggest } from '../values/suggest.ts';

/** The keys of a kind of file: the known ones, and those reserved for later. */
export class KnownKeys {
  readonly #schema: () => JsonSchema;
  readonly #unsupported: ReadonlyMap<string, string>;

  /**
   * @param schema called only when it is needed, because building it is slow
   * @param unsupported keys that are not typing errors, such as `routes.*.poll`, and why they are not accepted; `*` is any step
   */
  constructor(schema: () => JsonSchema, unsupported: ReadonlyMap<string, string>) {
    this.#schema = schema;
    this.#unsupported = unsupported;
  }

  /** Why a key that is not a typing error is not accepted; undefined for all others. */
  whyUnsupported(path: Path): string | undefined {
    for (const [pattern, why] of this.#unsupported) {
      const keys = pattern.split('.');
      if (keys.length === path.length && keys.every((key, i) => key === '*' || key === path[i])) return why;
    }
    return undefined;
  }

  /** For a key that is known here only beside another discriminator, that one: `kind: gcra or bucket`. */
  findDiscriminator(path: Path, key: string): string | undefined {
    const discriminators = this.#schemasAt(path)
      .filter((schema) => key in properties(schema))
      .flatMap((schema) => Object.entries(properties(schema)))
      .flatMap(([name, value]) =>
        isMapping(value) && 'const' in value ? [[name, String(value['const'])] as const] : [],
      );
    const [name] = discriminators[0] ?? [];
    return name === undefined ? undefined : `${name}: ${discriminators.map(([, value]) => value).join(' or ')}`;
  }

  /** A likely correction of an unknown key: a similar key beside it, or the same key one level down, such as `retry.attempts`. */
  suggestKey(path: Path, key: string): string | undefined {
    const here = this.#schemasAt(path);
    const beside = here.flatMap((schema) => Object.entries(properties(schema)));
    const near = suggest(
      key,
      // The key itself may be known beside another `kind`.
      beside.map(([name]) => name).filter((name) => name !== key),
    );
    if (near !== undefined) return near;
    const [below] = beside.filter(([, schema]) => alternatives(schema).some((one) => key in properties(one)));
    return below === undefined ? undefined : `${below[0]}.${key}`;
  }

  /** The keys that are known at `path`; none where any key is a name. */
  keysAt(path: Path): ReadonlySet<string> {
    return new Set(this.#schemasAt(path).flatMap((schema) => Object.keys(properties(schema))));
  }

  /** True where keys are names, as in `upstreams`. */
  hasAnyKey(path: Path): boolean {
    return this.#schemasAt(path).some((schema) => isMapping(schema['additionalProperties']));
  }

  /** The only kind of value with parts that is allowed at `path`; undefined if both kinds are, or none. */
  expectedKind(path: Path): 'mapping' | 'list' | undefined {
    const kinds = new Set(this.#schemasAt(path).map((schema) => schema['type']));
    if (kinds.has('object') === kinds.has('array')) return undefined;
    return kinds.has('object') ? 'mapping' : 'list';
  }

  /** All schemas that apply at `path`. */
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
  if (!isMapping(schema)) return [];
  const choices: unknown = schema['anyOf'] ?? schema['oneOf'];
  return Array.isArray(choices) ? choices.flatMap(alternatives) : [schema];
}

function properties(schema: JsonSchema): JsonSchema {
  return isMapping(schema['properties']) ? schema['properties'] : {};
}
