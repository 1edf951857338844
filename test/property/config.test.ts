import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseArguments } from '../../src/cli/parse-arguments.ts';
import { parseListenAddress, formatListenAddress } from '../../src/config/values/listen-address.ts';
import { parseClientKey, formatClientKey } from '../../src/config/schema/clients-schema.ts';
import { formatEffectiveConfig } from '../../src/config/load/effective-config.ts';
import type { LoadResult } from '../../src/config/load/load-config.ts';
import { loadConfig } from '../../src/config/load/load-config.ts';
import { formatMistakes } from '../../src/config/load/mistakes.ts';
import {
  parseByteRate,
  parseDuration,
  parseRate,
  parseSize,
  formatByteRate,
  formatDuration,
  formatRate,
  formatSize,
} from '../../src/config/values/unit-schemas.ts';
import { parseUpstreamUrl } from '../../src/config/values/upstream-url.ts';
import { makePem } from '../support/certificates.ts';
import { withPresets } from '../support/proxy/presets.ts';

const REFERENCE = ['$', '{X}'].join('');
const SOUND = [
  'config/tidegate.yaml',
  'config/examples/clients.yaml',
  'config/examples/gateway.yaml',
  'config/examples/replicas.yaml',
  'config/examples/stripe-sidecar.yaml',
  'config/examples/async-writes.yaml',
  'config/examples/webhooks.yaml',
].map((file) => readFileSync(join(import.meta.dirname, '../..', file), 'utf8'));

const PEM = makePem();

function load(text: string): LoadResult {
  return loadConfig(text, 'f.yaml', {
    env: { TIDEGATE_ADMIN_TOKEN: '0123456789abcdef' },
    readFile: withPresets((path) => {
      if (path.endsWith('.keys')) return ''; // API keys: none
      return /\.(?:pem|crt)$/.test(path) ? PEM : '0123456789abcdef\n';
    }),
  });
}

/** The result has the documented form. */
function expectForm(text: string): void {
  const loaded = load(text);
  if (loaded.kind === 'ok') {
    expect(formatEffectiveConfig(loaded.config, loaded.substituted)).toMatch(/^listen: /);
    return;
  }
  const lines = text.split('\n');
  expect(loaded.mistakes.length).toBeGreaterThan(0);
  for (const { file, line, column, message } of loaded.mistakes) {
    expect(file).toBe('f.yaml');
    expect(message).not.toBe('');
    expect(line).toBeGreaterThanOrEqual(1);
    expect(line).toBeLessThanOrEqual(lines.length);
    expect(column).toBeGreaterThanOrEqual(1);
    expect(column).toBeLessThanOrEqual((lines[(line ?? 0) - 1]?.length ?? 0) + 1);
  }
  expect(
    formatMistakes(loaded.mistakes)
      .split('\n')
      .every((mistake) => /^f\.yaml:\d+:\d+ ./.test(mistake)),
  ).toBe(true);
}

describe('units are the same after formatting and parsing', () => {
  const decimal = fc
    .tuple(fc.nat(100_000), fc.nat(9999))
    .map(([whole, part]) => (part === 0 ? `${whole}` : `${whole}.${part}`));

  test('for durations', () => {
    fc.assert(
      fc.property(decimal, fc.constantFrom('ms', 's', 'm', 'h'), (number, unit) => {
        const reading = parseDuration(`${number}${unit}`);
        fc.pre(reading.ok);
        expect(parseDuration(formatDuration(reading.value))).toEqual(reading);
      }),
    );
    fc.assert(
      fc.property(fc.nat(2_073_600_000), (ms) => {
        expect(parseDuration(formatDuration(ms))).toEqual({ ok: true, value: ms });
      }),
    );
  });

  test('for rates', () => {
    fc.assert(
      fc.property(decimal, fc.constantFrom('s', 'm', 'h'), (number, unit) => {
        const reading = parseRate(`${number}/${unit}`);
        fc.pre(reading.ok);
        expect(parseRate(formatRate(reading.value))).toEqual(reading);
      }),
    );
  });

  test('for sizes', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), (bytes) => {
        expect(parseSize(formatSize(bytes))).toEqual({ ok: true, value: bytes });
        expect(parseByteRate(formatByteRate(bytes))).toEqual({ ok: true, value: bytes });
      }),
    );
    fc.assert(
      fc.property(fc.nat(1_000_000), fc.constantFrom('B', 'KiB', 'MiB', 'GiB'), (number, unit) => {
        const reading = parseSize(`${number}${unit}`);
        expect(reading.ok && parseSize(formatSize(reading.value))).toEqual(reading);
      }),
    );
  });

  test('for listen addresses and client keys', () => {
    const port = fc.nat(65_535);
    const host = fc.oneof(
      fc.ipV4(),
      fc.ipV6().map((address) => `[${address}]`),
      fc.domain(),
    );
    fc.assert(
      fc.property(host, port, (name, number) => {
        const reading = parseListenAddress(`${name}:${number}`);
        fc.pre(reading.ok);
        expect(formatListenAddress(reading.value)).toBe(`${name}:${number}`);
      }),
    );
    const key = fc.oneof(
      fc.constantFrom('ip', 'bearer'),
      fc.integer({ min: 1, max: 99 }).map((n) => `path:${n}`),
      fc.stringMatching(/^header:[A-Za-z-]{1,20}$/),
    );
    fc.assert(
      fc.property(key, (text) => {
        const reading = parseClientKey(text);
        expect(reading.ok && formatClientKey(reading.value)).toBe(text);
      }),
    );
  });

  test('and every suggestion is a value that the parser accepts', () => {
    const number = fc.oneof(fc.nat(1000).map(String), fc.constantFrom('.5', '1.25', '-1', ''));
    const unit = fc.oneof(
      fc.constantFrom(
        '',
        's',
        'sec',
        'S',
        'Minutes',
        'hr',
        'MB',
        'k',
        'kb',
        'rps',
        ' per minute',
        '/sec',
        'MB/sec',
        'd',
      ),
      fc.string({ maxLength: 5 }),
    );
    fc.assert(
      fc.property(number, unit, (n, u) => {
        for (const read of [parseDuration, parseRate, parseSize, parseByteRate]) {
          const reading = read(`${n}${u}`);
          if (reading.ok || reading.suggestion === undefined) continue;
          for (const suggestion of reading.suggestion.split(' or ')) {
            expect([suggestion, read(suggestion)]).toMatchObject([suggestion, { ok: true }]);
          }
        }
      }),
    );
  });
});

describe('the loader never throws', () => {
  test('on any text', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 200 }), expectForm), { numRuns: 300 });
    const yaml = fc.string({ unit: fc.constantFrom(...'ab:-[]{}\n  #&*!|>\'"%@?,~$x0\t\r<='.split('')) });
    fc.assert(fc.property(yaml, expectForm), { numRuns: 500 });
  });

  test('on a valid configuration with one changed part', () => {
    const change = fc.record({
      text: fc.constantFrom(...SOUND),
      at: fc.double({ min: 0, max: 1, noNaN: true }),
      cut: fc.nat(40),
      put: fc.oneof(
        fc.string({ maxLength: 20 }),
        fc.constantFrom(': ', '[', '}', REFERENCE, '*a', '\n', '- ', '"', '~', '5', 'null', '__proto__: 1\n'),
      ),
    });
    fc.assert(
      fc.property(change, ({ text, at, cut, put }) => {
        const from = Math.floor(at * text.length);
        expectForm(text.slice(0, from) + put + text.slice(from + cut));
      }),
      { numRuns: 400 },
    );
  });

  test('on any value at any place', () => {
    const keys = fc.constantFrom(
      'listen',
      'admin',
      'limits',
      'upstreams',
      'routes',
      'clients',
      'practice',
      'secret',
      'log',
      'x',
      'constructor',
      'a b',
    );
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: 'small' },
        fc.constantFrom(null, true, 0, -1, 1.5, '', '5s', 'http://a', 'practice', 'stripe', REFERENCE),
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(
          fc.oneof(
            keys,
            fc.constantFrom(
              'url',
              'provider',
              'retry',
              'backOff',
              'path',
              'upstream',
              'key',
              'classes',
              'match',
              'rateLimit',
              'tls',
            ),
          ),
          tie('value'),
          { maxKeys: 4 },
        ),
      ),
    }));
    fc.assert(
      fc.property(fc.dictionary(keys, value, { maxKeys: 5 }), (config) => expectForm(JSON.stringify(config))),
      { numRuns: 400 },
    );
  });

  test('on any URL and any arguments', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.webUrl({ withQueryParameters: true })), (text) => {
        const reading = parseUpstreamUrl(text);
        if (reading.ok && text !== 'practice') expect(new URL(reading.value).origin).toBe(reading.value);
      }),
    );
    const word = fc.oneof(
      fc.string(),
      fc.constantFrom('serve', 'check', 'backoff', 'sip', '--json', '--listen', '--', '-h', '--attempts', '--base=5s'),
    );
    fc.assert(
      fc.property(fc.array(word, { maxLength: 5 }), (argv) => {
        const command = parseArguments(argv);
        if (command.kind === 'usage-error') expect(command.message).not.toBe('');
      }),
    );
  });
});
