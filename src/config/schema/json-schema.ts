import { z } from 'zod';
import { ConfigSchema } from './config-schema.ts';

export type JsonSchema = Readonly<Record<string, unknown>>;

const REFERENCE = { $ref: '#/$defs/reference' };

let made: JsonSchema | undefined;

/** The configuration as written, as JSON Schema 2020-12: for editors, and to know which keys there are. */
export function jsonSchema(): JsonSchema {
  made ??= toJsonSchema(ConfigSchema, 'urn:tidegate:config', 'Tidegate configuration');
  return made;
}

/** What is written in the language of a schema. */
export function toJsonSchema(schema: z.ZodType, $id: string, title: string): JsonSchema {
  return {
    ...allowReferences(z.toJSONSchema(schema, { io: 'input' })),
    $id,
    title,
    $defs: {
      reference: { type: 'string', pattern: String.raw`\$\{`, description: 'A variable, or what a file holds.' },
    },
  };
}

/** Wherever a scalar must have a form, `${…}` may stand for it: an editor must not object. */
function allowReferences(schema: JsonSchema): JsonSchema {
  if (hasForm(schema)) {
    const { description, default: usual, ...form } = schema;
    return { ...(usual === undefined ? {} : { default: usual }), description, anyOf: [form, REFERENCE] };
  }
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, allowWithin(key, value)]));
}

function allowWithin(key: string, value: unknown): unknown {
  if (key === 'anyOf' || key === 'oneOf') {
    const choices = asList(value);
    const open = choices.map((choice) => (hasForm(choice) ? choice : allowReferences(choice)));
    return choices.some(hasForm) ? [...open, REFERENCE] : open;
  }
  if (key === 'properties' && isSchema(value)) {
    return Object.fromEntries(
      Object.entries(value).map(([name, inner]) => [name, isSchema(inner) ? allowReferences(inner) : inner]),
    );
  }
  return (key === 'items' || key === 'additionalProperties') && isSchema(value) ? allowReferences(value) : value;
}

function hasForm({ type, pattern, minLength, enum: values }: JsonSchema): boolean {
  if (type === 'string') return pattern !== undefined || values !== undefined || Number(minLength ?? 0) > 1;
  return type === 'number' || type === 'integer' || type === 'boolean' || values !== undefined;
}

function asList(value: unknown): readonly JsonSchema[] {
  return Array.isArray(value) ? value.filter(isSchema) : [];
}

export function isSchema(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
