/** The JSON Schema of the values: helm validates them with it before it renders anything. */
import type { JsonSchema } from '../../src/config/schema/json-schema.ts';
import type { ChartValue, ValueSection } from './chart-values.ts';

const STRINGS = { type: 'string' };
/** JSON Schema's own names of types. In a list of alternatives, any other word is a value. */
const TYPES: ReadonlySet<string> = new Set(['string', 'integer', 'boolean', 'null']);

/** Returns the schema. Keys that values.yaml does not have are refused, so that a typing error has no silent effect. */
export function valuesSchema(sections: readonly ValueSection[], config: JsonSchema): JsonSchema {
  const { $schema, $id: _id, title: _title, $defs, ...content } = config;
  const values = sections.flatMap((section) => section.values);
  return {
    $schema,
    title: 'Values of the Tidegate chart',
    ...closedObject(values),
    $defs: { ...(typeof $defs === 'object' ? $defs : {}), config: content },
  };
}

function closedObject(values: readonly ChartValue[], isRoot = true): JsonSchema {
  const own = values.map((value): [string, JsonSchema] => [value.name, schemaOf(value)]);
  // helm sets `global` for a chart that another depends on, and `enabled` is the usual condition of a dependency.
  const outer: [string, JsonSchema][] = isRoot
    ? [
        ['global', { type: 'object' }],
        ['enabled', { type: 'boolean' }],
      ]
    : [];
  return { type: 'object', properties: Object.fromEntries([...own, ...outer]), additionalProperties: false };
}

function schemaOf(value: ChartValue): JsonSchema {
  if (value.kind === 'group') return closedObject(value.values, false);
  return { description: `${value.description}.`, ...typeSchema(value.type) };
}

function typeSchema(type: string): JsonSchema {
  // Not `anyOf`, whose messages would list both forms for each mistake in one.
  if (type === 'tidegate.yaml') return { if: STRINGS, else: { $ref: '#/$defs/config' } };
  if (type === 'map of strings') return { type: 'object', additionalProperties: STRINGS };
  if (type === 'list of strings') return { type: 'array', items: STRINGS };
  // The API server validates the fields of its own types.
  if (type.startsWith('Kubernetes ')) {
    return type.endsWith(' list') ? { type: 'array', items: { type: 'object' } } : { type: 'object' };
  }
  const minimum = / from (\d+)/.exec(type)?.[1];
  if (minimum !== undefined) return { ...typeSchema(type.replace(/ from \d+/, '')), minimum: Number(minimum) };
  const alternatives = type.split(' | ');
  const types = alternatives.filter((each) => TYPES.has(each));
  const values = alternatives.filter((each) => !TYPES.has(each));
  if (values.length === 0) return { type: types.length === 1 ? types[0] : types };
  return { enum: [...values, ...(types.includes('null') ? [null] : [])] };
}
