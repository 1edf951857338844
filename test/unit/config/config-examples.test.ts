import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { formatEffectiveConfig } from '../../../src/config/load/effective-config.ts';
import { configJsonSchema } from '../../../src/config/schema/json-schema.ts';
import { isMapping } from '../../../src/config/values/plain-object.ts';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import { formatMistakes, formatWarnings } from '../../../src/config/load/mistakes.ts';
import type { ConfigEnvironment } from '../../../src/config/load/substitute.ts';
import { makePem } from '../../support/certificates.ts';
import { withPresets } from '../../support/proxy/presets.ts';

const root = join(import.meta.dirname, '../../..');
const FILES = [
  'config/tidegate.yaml',
  'config/practice.yaml',
  'config/examples/stripe-sidecar.yaml',
  'config/examples/clients.yaml',
  'config/examples/gateway.yaml',
  'config/examples/replicas.yaml',
  'config/examples/async-writes.yaml',
  'config/examples/webhooks.yaml',
  'docker/tidegate/tidegate.yaml',
  'docker/deliveries/tidegate.yaml',
  'docker/replicas/tidegate.yaml',
];
const PEM = makePem();
const surroundings: ConfigEnvironment = {
  env: { TIDEGATE_ADMIN_TOKEN: '0123456789abcdef' },
  readFile: withPresets((path) => {
    if (path.endsWith('.keys')) return ''; // API keys: none
    return /\.(?:pem|crt)$/.test(path) ? PEM : '0123456789abcdef0123456789abcdef\n';
  }),
};

const ajv = new Ajv2020({ allErrors: true });
const validate = ajv.compile(configJsonSchema());

function read(file: string): string {
  return readFileSync(join(root, file), 'utf8');
}

function effective(text: string): string {
  const loaded = loadConfig(text, 'f', surroundings);
  if (loaded.kind === 'mistakes') throw new Error(formatMistakes(loaded.mistakes));
  return formatEffectiveConfig(loaded.config, loaded.substituted);
}

describe.each(FILES)('%s', (file) => {
  test('has neither mistakes nor warnings', () => {
    const loaded = loadConfig(read(file), file, surroundings);
    expect(loaded.kind === 'mistakes' ? formatMistakes(loaded.mistakes) : formatWarnings(loaded.warnings)).toBe('');
  });

  test('is valid against the JSON Schema, as written and as printed', () => {
    for (const text of [read(file), effective(read(file))]) {
      validate(parse(text));
      expect(validate.errors).toBeNull();
    }
  });
});

test('the values in the comments of tidegate.yaml are the defaults', () => {
  const text = read('config/tidegate.yaml');
  const uncommented = text.replace(/^( *)#(?=[a-z])/gim, '$1');
  expect(uncommented.split('\n').filter((line, i) => line !== text.split('\n')[i]).length).toBeGreaterThan(20);
  // The defaults of the strategy are filled in for both.
  expect(effective(uncommented)).toBe(effective(text));
});

describe('the JSON Schema', () => {
  test('describes every key in a sentence', () => {
    const missing: string[] = [];
    const walk = (schema: unknown, path: string): void => {
      if (Array.isArray(schema)) for (const one of schema) walk(one, path);
      if (!isMapping(schema)) return;
      for (const [name, inner] of Object.entries(isMapping(schema['properties']) ? schema['properties'] : {})) {
        const description: unknown = isMapping(inner) ? inner['description'] : undefined;
        if (typeof description !== 'string' || !description.endsWith('.')) missing.push(`${path}.${name}`);
        walk(inner, `${path}.${name}`);
      }
      for (const key of ['anyOf', 'oneOf', 'items', 'additionalProperties']) walk(schema[key], `${path}.*`);
    };
    walk(configJsonSchema(), '');
    expect(missing).toEqual([]);
  });

  test.each([
    'upstreams: {api: {url: api.example.com}}',
    'upstreams: {api: {url: http://a, timeout: 5}}',
    'upstreams: {api: {url: http://a, timeout: 5 s}}',
    'upstreams: {api: {url: http://a, atempts: 5}}',
    'upstreams: {1st: {url: http://a}}',
    'upstreams: {api: {url: http://a, retry: {retryOn: [200]}}}',
    'upstreams: {api: {url: http://a, rateLimit: {maxRate: 5}}}',
    'listen: 8080',
    'clients: {key: [cookie]}',
    'clients: {classes: {c: {match: {}}}}',
  ])('rejects the same malformed input as the loader: %s', (text) => {
    expect(validate(parse(text))).toBe(false);
    expect(loadConfig(text, 'f', surroundings).kind).toBe('mistakes');
  });

  test('accepts a variable in place of any scalar', () => {
    const x = '"${X}"'; // oxlint-disable-line eslint/no-template-curly-in-string -- written as a config has it
    validate(
      parse(`listen: ${x}
admin: {listen: ${x}, token: ${x}}
limits: {replayMemory: ${x}, connections: ${x}}
upstreams: {api: {url: ${x}, timeout: ${x}, preserveHost: ${x}, retry: {retryOn: [${x}], backOff: {strategy: ${x}}}, rateLimit: {maxRate: ${x}}}}
clients: {key: [${x}]}
`),
    );
    expect(validate.errors).toBeNull();
  });
});

describe('the sidecar for Stripe is configured the same', () => {
  const sidecar = read('config/examples/stripe-sidecar.yaml');

  test.each(['README.md', 'docs/sidecar.md'])('as the example in %s', (document) => {
    expect(read(document)).toContain(`\`\`\`yaml\n${sidecar}\`\`\`\n`);
  });

  test('as the example in a pod', () => {
    const { upstreams, clients } = parse(sidecar) as Readonly<Record<string, unknown>>;
    const { config } = parse(read('config/helm/tidegate/ci/sidecar-values.yaml')) as Readonly<Record<string, unknown>>;
    expect(config).toMatchObject({ upstreams, clients });
  });
});
