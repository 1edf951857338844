/** Converts JSON Schema to a TypeScript type with its descriptions, which editors show for a configuration in code. */
type Schema = Readonly<Record<string, unknown>>;

/** @throws for unsupported keywords, which would be lost otherwise */
export function typeOfSchema(schema: Schema, indent = ''): string {
  const unknown = Object.keys(schema).filter((key) => !READ.has(key) && !LEFT_OUT.has(key));
  if (unknown.length > 0) throw new Error(`no type is known for ${unknown.join(', ')}`);
  const choices = listOf(schema['anyOf'] ?? schema['oneOf']);
  if (choices.length > 0) return unite(choices.map((choice) => typeOfSchema(choice, indent)));
  if ('const' in schema) return JSON.stringify(schema['const']);
  if (Array.isArray(schema['enum'])) return unite(schema['enum'].map((value) => JSON.stringify(value)));
  switch (schema['type']) {
    case 'string':
    case 'boolean':
    case 'number':
      return schema['type'];
    case 'integer':
      return 'number';
    case 'array':
      return `readonly (${typeOfSchema(schemaIn(schema, 'items'), indent)})[]`;
    case 'object':
      return typeOfObject(schema, indent);
    default:
      throw new Error(`no type is known for ${JSON.stringify(schema)}`);
  }
}

const READ: ReadonlySet<string> = new Set([
  'anyOf',
  'oneOf',
  'const',
  'enum',
  'type',
  'items',
  'properties',
  'required',
  'additionalProperties',
  'description',
  'default',
]);

/** Keywords without an equivalent in types; they are checked when the configuration is read. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  '$schema',
  'title',
  'examples',
  'allOf',
  'not',
  'pattern',
  'propertyNames',
  'minProperties',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'uniqueItems',
  'format',
]);

function typeOfObject(schema: Schema, indent: string): string {
  const { properties, additionalProperties, required } = schema;
  if (!isSchema(properties)) {
    const inner = isSchema(additionalProperties) ? typeOfSchema(additionalProperties, indent) : 'unknown';
    return `{ readonly [name: string]: ${inner} }`;
  }
  if (isSchema(additionalProperties)) throw new Error('an object with names of both kinds');
  const needed = new Set<unknown>(Array.isArray(required) ? required : []);
  const within = `${indent}  `;
  const lines = Object.entries(properties).flatMap(([name, property]) => {
    if (!isSchema(property)) return [];
    const key = /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
    const type = typeOfSchema(property, within);
    const value = needed.has(name) ? `${key}: ${type}` : `${key}?: ${type} | undefined`;
    return [...comment(property, within), `${within}readonly ${value};`];
  });
  return `{\n${lines.join('\n')}\n${indent}}`;
}

function comment({ description, default: usual }: Schema, indent: string): string[] {
  const words = [
    ...(typeof description === 'string' ? [description] : []),
    ...(usual === undefined || typeof usual === 'object' ? [] : [`@default ${JSON.stringify(usual)}`]),
  ];
  return words.length === 0 ? [] : [`${indent}/** ${words.join(' ').replaceAll('*/', '* /')} */`];
}

function unite(types: readonly string[]): string {
  return [...new Set(types)].join(' | ');
}

function schemaIn(schema: Schema, key: string): Schema {
  const inner = schema[key];
  if (!isSchema(inner)) throw new Error(`${key} is no schema`);
  return inner;
}

function listOf(value: unknown): readonly Schema[] {
  return Array.isArray(value) ? value.filter(isSchema) : [];
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
