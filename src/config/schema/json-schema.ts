import { z } from 'zod';
import { ConfigSchema } from './config-schema.ts';
import type { PlainObject } from '../values/plain-object.ts';
import { isMapping } from '../values/plain-object.ts';

export type JsonSchema = PlainObject;

const REFERENCE = { $ref: '#/$defs/reference' };

let cachedSchema: JsonSchema | undefined;

/** The configuration as written, as JSON Schema 2020-12: for editors, and for the suggestions in error messages. */
export function configJsonSchema(): JsonSchema {
  cachedSchema ??= toJsonSchema(ConfigSchema, 'urn:tidegate:config', 'Tidegate configuration');
  return cachedSchema;
}

/** The JSON Schema of a file as written, before its values are decoded. */
export function toJsonSchema(schema: z.ZodType, $id: string, title: string): JsonSchema {
  return {
    ...allowReferences(z.toJSONSchema(schema, { io: 'input' })),
    $id,
    title,
    $defs: {
      reference: { type: 'string', pattern: String.raw`\$\{`, description: 'A reference to a variable or a file.' },
    },
  };
}

/** Accepts `${…}` wherever a scalar is constrained, so that editors do not flag a reference. */
function allowReferences(schema: JsonSchema): JsonSchema {
  if (isConstrained(schema)) {
    const { description, default: defaultValue, ...constraint } = schema;
    return {
      ...(defaultValue === undefined ? {} : { default: defaultValue }),
      description,
      anyOf: [constraint, REFERENCE],
    };
  }
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, allowWithin(key, value)]));
}

function allowWithin(key: string, value: unknown): unknown {
  if (key === 'anyOf' || key === 'oneOf') {
    const choices = asList(value);
    const open = choices.map((choice) => (isConstrained(choice) ? choice : allowReferences(choice)));
    return choices.some(isConstrained) ? [...open, REFERENCE] : open;
  }
  if (key === 'properties' && isMapping(value)) {
    return Object.fromEntries(
      Object.entries(value).map(([name, inner]) => [name, isMapping(inner) ? allowReferences(inner) : inner]),
    );
  }
  return (key === 'items' || key === 'additionalProperties') && isMapping(value) ? allowReferences(value) : value;
}

function isConstrained({ type, pattern, minLength, enum: values }: JsonSchema): boolean {
  if (type === 'string') return pattern !== undefined || values !== undefined || Number(minLength ?? 0) > 1;
  return type === 'number' || type === 'integer' || type === 'boolean' || values !== undefined;
}

function asList(value: unknown): readonly JsonSchema[] {
  return Array.isArray(value) ? value.filter(isMapping) : [];
}
