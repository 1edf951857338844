/** The files of the chart that are generated. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { RESTART_PATHS } from '../../src/config/load/config-diff.ts';
import { configJsonSchema } from '../../src/config/schema/json-schema.ts';
import { parseChartValues } from './chart-values.ts';
import { writeReadme } from './readme.ts';
import { valuesSchema } from './values-schema.ts';

const ROOT = join(import.meta.dirname, '../..');
export const CHART = join(ROOT, 'config/helm/tidegate');

/** Returns the text of each generated file by its path in the chart. */
export function generateChartFiles(): ReadonlyMap<string, string> {
  const values = parseChartValues(read('config/helm/tidegate/values.yaml'));
  return new Map([
    // A chart can read no file outside its folder, and npm packages contain no links: so these two are copies.
    ['files/tidegate.rules.yml', read('docker/prometheus/tidegate.rules.yml')],
    ['files/dashboard.json', read('docker/grafana/dashboards/tidegate.json')],
    ['files/restart-paths.txt', RESTART_PATHS.map((path) => path.join('.')).join('\n')],
    ['values.schema.json', `${JSON.stringify(valuesSchema(values, configJsonSchema()), null, 1)}\n`],
    ['README.md', writeReadme(read('scripts/helm/readme.md'), values, (file) => read(`config/helm/tidegate/${file}`))],
  ]);
}

function read(file: string): string {
  return readFileSync(join(ROOT, file), 'utf8');
}
