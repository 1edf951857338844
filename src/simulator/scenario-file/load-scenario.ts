import type { JsonSchema } from '../../config/schema/json-schema.ts';
import { toJsonSchema } from '../../config/schema/json-schema.ts';
import { KnownKeys } from '../../config/load/known-keys.ts';
import { layPreset } from '../../config/presets/preset.ts';
import type { Document } from '../../config/load/read-document.ts';
import { readDocument } from '../../config/load/read-document.ts';
import { checkScenario } from './scenario-rules.ts';
import type { ScenarioConfig } from './scenario-schema.ts';
import { ScenarioSchema } from './scenario-schema.ts';
import type { Surroundings } from '../../config/load/substitute.ts';

let schema: JsonSchema | undefined;

const KEYS = new KnownKeys(() => {
  schema ??= toJsonSchema(ScenarioSchema, 'urn:tidegate:scenario', 'Tidegate scenario');
  return schema;
}, ['policy.limits']);

/** A scenario has its upstream's url within it. */
const POLICY_KEYS = Object.keys(ScenarioSchema.shape.policy.unwrap().shape);

/** Reads a scenario. Never throws; tells every mistake at once, in the order of the file. */
export function loadScenario(text: string, file: string, surroundings: Surroundings): Document<ScenarioConfig> {
  const language = { schema: ScenarioSchema, keys: KEYS, check: checkScenario };
  return readDocument(text, file, surroundings, language, (drafted) =>
    layPreset(drafted, ['policy'], surroundings.readFile, POLICY_KEYS),
  );
}
