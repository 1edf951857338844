import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readFile } from '../../src/cli/read-file.ts';
import { mergePreset } from '../../src/config/presets/preset-merge.ts';
import { formatEffectiveConfig } from '../../src/config/load/effective-config.ts';
import { isMapping, valueAt } from '../../src/config/values/plain-object.ts';
import { loadConfig } from '../../src/config/load/load-config.ts';
import { formatMistakes } from '../../src/config/load/mistakes.ts';
import type { Path } from '../../src/config/load/mistakes.ts';
import { PROVIDERS } from '../../src/config/presets/providers.ts';
import type { UpstreamConfig } from '../../src/config/schema/config-schema.ts';

/** Paths of all values that are no mapping, and of empty mappings. */
function leaves(value: unknown, path: Path = []): Path[] {
  if (!isMapping(value) || Object.keys(value).length === 0) return [path];
  return Object.entries(value).flatMap(([key, inner]) => leaves(inner, [...path, key]));
}

/** Whether the path has a value, or leads through a value that is no mapping. */
function isSet(settings: object, path: Path): boolean {
  for (let length = 1; length <= path.length; length += 1) {
    if (valueAt(settings, path.slice(0, length)) === undefined) return false;
    if (!isMapping(valueAt(settings, path.slice(0, length)))) return true;
  }
  return true;
}

const key = fc.constantFrom('url', 'timeout', 'retry', 'attempts', 'retryOn', 'queue', 'rateLimit', 'backOff', 'x');
const { mapping } = fc.letrec<{ value: unknown; mapping: Record<string, unknown> }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom(null, false, 0, '', 'a', '5s'),
    fc.array(fc.constantFrom('a', 1), { maxLength: 2 }),
    tie('mapping'),
  ),
  mapping: fc.dictionary(key, tie('value'), { maxKeys: 5, noNullPrototype: true }),
}));

test('a merge of two mappings keeps all values of the upper one, and all others of the lower one', () => {
  fc.assert(
    fc.property(mapping, mapping, (written, preset) => {
      const both = structuredClone(written);
      const added = mergePreset(both, structuredClone(preset));
      for (const path of leaves(written)) {
        const own = valueAt(written, path);
        if (isMapping(own)) expect(isMapping(valueAt(both, path))).toBe(true);
        else expect(valueAt(both, path)).toEqual(own);
      }
      for (const path of leaves(preset)) {
        const isLeftOut = path[0] === 'url' && Object.hasOwn(written, 'url');
        if (path.length > 0 && !isSet(written, path) && !isLeftOut) {
          expect(valueAt(both, path)).toEqual(valueAt(preset, path));
          expect(added.some((root) => root.every((step, i) => step === path[i]))).toBe(true);
        }
      }
      // No value comes from elsewhere.
      for (const path of leaves(both)) {
        if (path.length > 0) expect(isSet(written, path) || isSet(preset, path)).toBe(true);
      }
    }),
    { numRuns: 500 },
  );
});

const some = <T>(...values: T[]) => fc.constantFrom(...values);
/** Settings that a user may write. */
const settings = fc.record(
  {
    timeout: some('2s', '70s'),
    perTryTimeout: some('1s', '30s'),
    connections: some(1, 500),
    queue: fc.record({ maxWait: some('0s', '5s') }, { requiredKeys: [] }),
    idempotency: fc.record({ header: some<string | false>('X-Once', false) }, { requiredKeys: [] }),
    rateLimit: fc.record(
      { initialRate: some('1/s', '30/s'), minRate: some('0.5/s', '40/s'), maxRate: some('0.9/s', '60/m', '200/s') },
      { requiredKeys: [] },
    ),
    retry: fc.record(
      {
        retryOn: some([], ['reset'], ['500', 'lock']),
        attempts: some(1, 9),
        unkeyedWrites: some('never', 'on429', 'always'),
        backOff: fc.record(
          { strategy: some('full-jitter', 'fixed', 'grpc'), baseInterval: some('10ms', '2s') },
          { requiredKeys: [] },
        ),
      },
      { requiredKeys: [] },
    ),
  },
  { requiredKeys: [] },
);

function load(upstream: object) {
  const loaded = loadConfig(JSON.stringify({ upstreams: { api: upstream } }), 'f.yaml', { env: {}, readFile });
  return loaded.kind === 'ok' ? loaded : formatMistakes(loaded.mistakes);
}

function upstreamOf(settingsOf: object): UpstreamConfig {
  const loaded = load(settingsOf);
  if (typeof loaded === 'string') throw new Error(loaded);
  return onlyUpstream(loaded);
}

function onlyUpstream({ config }: Exclude<ReturnType<typeof load>, string>): UpstreamConfig {
  const upstream = config.upstreams['api'];
  if (upstream === undefined) throw new Error('there is no upstream');
  return upstream;
}

describe.each(PROVIDERS)('with the preset %s', (provider) => {
  const url = 'https://api.example.com';

  test('valid settings stay valid and keep their meaning', () => {
    const bare = upstreamOf({ url });
    const preset = upstreamOf({ url, provider });
    fc.assert(
      fc.property(settings, (written) => {
        const alone = load({ url, ...written });
        fc.pre(typeof alone !== 'string');
        const before = onlyUpstream(alone);
        const both = upstreamOf({ url, provider, ...written });
        for (const path of leaves(written)) {
          const isEmpty = isMapping(valueAt(written, path));
          if (!isEmpty) expect(valueAt(both, path)).toEqual(valueAt(before, path));
        }
        for (const path of leaves(preset)) {
          const known = valueAt(preset, path);
          if (isSet(written, path) || JSON.stringify(known) === JSON.stringify(valueAt(bare, path))) continue;
          const { initialRate, minRate, maxRate = Infinity } = both.rateLimit;
          const isBeyond = path.at(-1) === 'initialRate' && (Number(known) > maxRate || Number(known) < minRate);
          expect(isBeyond ? initialRate : valueAt(both, path)).toEqual(isBeyond ? undefined : known);
        }
      }),
      { numRuns: 60 },
    );
  });

  test('printed settings parse to the same configuration', () => {
    fc.assert(
      fc.property(settings, (written) => {
        const loaded = load({ url, provider, ...written });
        fc.pre(typeof loaded !== 'string');
        const printed = formatEffectiveConfig(loaded.config);
        const again = loadConfig(printed, 'f.yaml', { env: {}, readFile });
        expect(again.kind === 'ok' ? formatEffectiveConfig(again.config) : formatMistakes(again.mistakes)).toBe(
          printed,
        );
      }),
      { numRuns: 20 },
    );
  });
});
