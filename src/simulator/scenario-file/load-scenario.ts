import type { JsonSchema } from '../../config/schema/json-schema.ts';
import { toJsonSchema } from '../../config/schema/json-schema.ts';
import { KnownKeys } from '../../config/load/known-keys.ts';
import { applyPreset } from '../../config/presets/preset.ts';
import type { DocumentResult } from '../../config/load/read-document.ts';
import { readDocument } from '../../config/load/read-document.ts';
import { checkScenarioRules } from './scenario-rules.ts';
import type { ScenarioConfig } from './scenario-schema.ts';
import { ScenarioSchema } from './scenario-schema.ts';
import type { ConfigEnvironment } from '../../config/load/substitute.ts';

let schema: JsonSchema | undefined;

const KEYS = new KnownKeys(
  () => {
    schema ??= toJsonSchema(ScenarioSchema, 'urn:tidegate:scenario', 'Tidegate scenario');
    return schema;
  },
  new Map([['policy.limits', 'not supported yet']]),
);

/** A scenario does not name its upstream's url. */
const POLICY_KEYS = Object.keys(ScenarioSchema.shape.policy.unwrap().shape);

/** Reads a scenario. Never throws; returns every mistake, in the order of the file. */
export function loadScenario(
  text: string,
  file: string,
  environment: ConfigEnvironment,
): DocumentResult<ScenarioConfig> {
  const language = { schema: ScenarioSchema, keys: KEYS, check: checkScenarioRules };
  return readDocument(text, file, environment, language, (drafted) =>
    applyPreset(drafted, ['policy'], environment.readFile, POLICY_KEYS),
  );
}
