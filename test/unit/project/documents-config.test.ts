import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { configJsonSchema } from '../../../src/config/schema/json-schema.ts';
import { loadScenario } from '../../../src/simulator/scenario-file/load-scenario.ts';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import { formatMistakes } from '../../../src/config/load/mistakes.ts';
import type { ConfigEnvironment } from '../../../src/config/load/substitute.ts';
import { makePem } from '../../support/certificates.ts';
import { withPresets } from '../../support/proxy/presets.ts';
import { readSnippets } from '../../support/documents/snippets.ts';

const root = join(import.meta.dirname, '../../..');
const documents = ['README.md', ...readdirSync(join(root, 'docs')).map((name) => `docs/${name}`)];
const PEM = makePem();
/** Also one of Standard Webhooks. */
const SECRET = 'whsec_0123456789abcdef0123456789abcdef';
const surroundings: ConfigEnvironment = {
  env: new Proxy({}, { get: () => SECRET, has: () => true }),
  readFile: withPresets((path) => {
    if (path.endsWith('.keys')) return ''; // API keys: none
    return /\.(?:pem|crt|key)$/.test(path) ? PEM : SECRET;
  }),
};

interface Properties {
  readonly properties: Readonly<Record<string, unknown>>;
}
const { properties } = configJsonSchema() as unknown as Properties;
const known = new Set(Object.keys(properties));
const ofRoute = new Set(Object.keys((properties['routes'] as { items: Properties }).items.properties));
const ofUpstream = new Set(
  Object.keys((properties['upstreams'] as { additionalProperties: Properties }).additionalProperties.properties),
);

const snippets = documents
  .filter((name) => name.endsWith('.md'))
  .flatMap((name) => readSnippets(readFileSync(join(root, name), 'utf8')).map((snippet) => ({ name, ...snippet })))
  .filter(({ language, marks }) => language === 'yaml' && !marks.some(({ kind }) => kind === 'by hand'))
  .map((snippet) => ({ ...snippet, title: `${snippet.name}:${snippet.line}` }));

/** A documented configuration may be a part, such as a route or an upstream; an upstream that is only named gets a URL. */
function complete(text: string): string {
  const part = parse(text) as Record<string, unknown>;
  const isOf = (keys: ReadonlySet<string>): boolean => Object.keys(part).every((key) => keys.has(key));
  const whole = isOf(known)
    ? part
    : isOf(ofRoute)
      ? { routes: [{ upstream: 'app', ...part }] }
      : { upstreams: { app: part } };
  const shown = whole as { upstreams?: Record<string, object | null>; routes?: { upstream: string }[] };
  const named = shown.routes?.map(({ upstream }) => upstream) ?? [];
  const upstreams: Record<string, object | null> = { ...(shown.upstreams ?? { app: null }) };
  for (const name of named) upstreams[name] ??= null;
  if (named.length > 0 && !named.includes('app') && shown.upstreams === undefined) delete upstreams['app'];
  for (const [name, upstream] of Object.entries(upstreams)) {
    const has = upstream !== null && ['url', 'urls', 'provider'].some((key) => key in upstream);
    if (!has) upstreams[name] = { url: 'https://api.example.com', ...upstream };
  }
  const routes = Object.keys(upstreams).map((upstream) => ({ path: `/${upstream}`, upstream }));
  return stringify({ routes, ...shown, upstreams });
}

/** A file of another program: its first line contains the file name, or it is a Kubernetes object. */
const isForeign = (text: string): boolean => /^# [\w./-]+\.ya?ml\b|^apiVersion: |^services:/m.test(text);

describe.each(snippets)('$title', ({ text }) => {
  test('is YAML that parses as documented', () => {
    const errors = parseAllDocuments(text).flatMap((document) => document.errors);
    expect(errors).toEqual([]);
    const keys = Object.keys((parseAllDocuments(text)[0]?.toJS() ?? {}) as object);
    if ([known, ofRoute, ofUpstream].some((some) => keys.every((key) => some.has(key)))) {
      const loaded = loadConfig(complete(text), 'snippet', surroundings);
      expect(loaded.kind === 'mistakes' ? formatMistakes(loaded.mistakes) : '').toBe('');
    } else if (keys.includes('upstream') && keys.includes('clients')) {
      const loaded = loadScenario(text, 'snippet', surroundings);
      expect(loaded.kind === 'mistakes' ? formatMistakes(loaded.mistakes) : '').toBe('');
    } else expect(isForeign(text), `what is this? ${keys.join(', ')}`).toBe(true);
  });
});
