import { z } from 'zod';
import { ConfigSchema } from './schema.ts';

export type JsonSchema = Readonly<Record<string, unknown>>;

let made: JsonSchema | undefined;

/** The configuration as written, as JSON Schema 2020-12: for editors, and to know which keys there are. */
export function jsonSchema(): JsonSchema {
  made ??= {
    $id: 'urn:tidegate:config',
    title: 'Tidegate configuration',
    ...z.toJSONSchema(ConfigSchema, { io: 'input' }),
  };
  return made;
}
