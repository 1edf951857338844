import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { CHART, generateChartFiles } from '../../../scripts/helm/chart-files.ts';
import { parseChartValues } from '../../../scripts/helm/chart-values.ts';
import { writeReadme } from '../../../scripts/helm/readme.ts';
import { valuesSchema } from '../../../scripts/helm/values-schema.ts';

test.each([...generateChartFiles()])('%s of the chart is what npm run helm writes', (name, text) => {
  expect(readFileSync(join(CHART, name), 'utf8') === text, 'run npm run helm').toBe(true);
});

test('the links in the README of the chart resolve', () => {
  const links = readFileSync(join(CHART, 'README.md'), 'utf8').matchAll(/\]\((?!https?:)([^)#\s]+)/g);
  expect(Array.from(links, ([, link = '']) => link).filter((link) => !existsSync(join(CHART, link)))).toEqual([]);
});

describe('values.yaml', () => {
  const TEXT = `
# Values.

## Run it

# -- (one | two | null) The mode
mode: one
image:
  # -- Where it is
  name: ''
# -- (integer from 1 | null) The number
count: 2
## Adapt it

# -- (map of strings) The labels
labels: {a: b}
# -- (Kubernetes Toleration list) The taints
tolerations: []
# -- (tidegate.yaml) The configuration
config: {}
`;
  const sections = parseChartValues(TEXT);
  const config = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: 'x',
    type: 'object',
    properties: { a: { type: 'string' } },
    $defs: { reference: {} },
  };
  const validate = new Ajv2020({ strict: false }).compile(valuesSchema(sections, config));

  test('gives the types, from comments or from defaults', () => {
    expect(validate(parse(TEXT))).toBe(true);
    for (const valid of [
      '{mode: null}',
      '{image: {name: x}}',
      '{count: 3}',
      '{count: null}',
      '{config: text}',
      '{tolerations: [{a: 1}]}',
      '{global: {}}',
    ]) {
      expect(validate(parse(valid)), valid).toBe(true);
    }
    const wrong = [
      '{mode: three}',
      '{image: {tag: x}}',
      '{count: x}',
      '{count: 0}',
      '{config: [a]}',
      '{labels: {a: 1}}',
      '{tolerations: [a]}',
      '{new: 1}',
    ];
    for (const invalid of [...wrong, '{config: {a: 1}}']) expect(validate(parse(invalid)), invalid).toBe(false);
  });

  test('gives the tables of the README', () => {
    expect(writeReadme('<!-- values -->\n<!-- file: f.yaml -->', sections, (file) => `${file}: 1\n`)).toBe(`### Run it

| value | type | default | meaning |
| --- | --- | --- | --- |
| \`mode\` | one or two or null | \`one\` | The mode. |
| \`image.name\` | string |  | Where it is. |
| \`count\` | integer from 1 or null | \`2\` | The number. |

### Adapt it

| value | type | default | meaning |
| --- | --- | --- | --- |
| \`labels\` | map of strings | \`{"a":"b"}\` | The labels. |
| \`tolerations\` | Kubernetes Toleration list | \`[]\` | The taints. |
| \`config\` | tidegate.yaml | \`{}\` | The configuration. |
\`\`\`yaml
f.yaml: 1
\`\`\``);
  });

  test.each([
    ['## A\n\na: 1', 'a has no description'],
    ['# -- A\na: 1', 'a is in no section'],
    ['## A\n\nb:\n  # -- B\n  c: {}', 'the description of b.c has to begin with a type'],
  ])('fails with a message if it is incomplete: %j', (text, message) => {
    expect(() => parseChartValues(text)).toThrow(message);
  });
});
