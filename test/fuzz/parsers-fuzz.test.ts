/** Feeds the parsers of external input with arbitrary input. For a longer run: `npm run fuzz`. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseListenAddress } from '../../src/config/values/listen-address.ts';
import { parseClientKey } from '../../src/config/schema/clients-schema.ts';
import { formatEffectiveConfig } from '../../src/config/load/effective-config.ts';
import { loadConfig } from '../../src/config/load/load-config.ts';
import { formatMistakes } from '../../src/config/load/mistakes.ts';
import { parseByteRate, parseDuration, parseRate, parseSize } from '../../src/config/values/unit-schemas.ts';
import { parseUpstreamUrl } from '../../src/config/values/upstream-url.ts';
import { MAX_DELAY, MAX_HINTED_DELAY } from '../../src/core/hints/hint-numbers.ts';
import { readHints } from '../../src/core/hints/read-hints.ts';
import type { Hints } from '../../src/core/hints/hints.ts';
import { FUZZ_TIMEOUT, fuzz } from '../support/fuzz/fuzz.ts';
import { makeMutator } from '../support/fuzz/mutate.ts';

const CASES = 100_000;
const REFERENCE = ['$', '{SECRET}'].join('');

describe('hints', () => {
  const WALL = Date.UTC(2026, 10, 21, 11, 26, 0);
  const names = [
    ...['Retry-After', 'retry-after-ms', 'grpc-retry-pushback-ms', 'Stripe-Should-Retry', 'Stripe-Rate-Limited-Reason'],
    ...['x-envoy-ratelimited', 'RateLimit', 'RateLimit-Policy', 'RateLimit-Limit', 'RateLimit-Remaining', 'Date'],
    ...[
      'RateLimit-Reset',
      'X-RateLimit-Limit',
      'X-RateLimit-Remaining',
      'X-RateLimit-Reset',
      'X-RateLimit-Reset-After',
    ],
    'X-Shopify-Shop-Api-Call-Limit',
  ];
  const values = [
    ...['120', '1.5', 'true', 'false', 'resource-specific', '32/40', '100, 100;w=60', '1795260420', '1795260420000'],
    ...['Sat, 21 Nov 2026 11:26:45 GMT', 'Saturday, 21-Nov-26 11:26:45 GMT', 'Sat Nov 21 11:26:45 2026'],
    ...['"default";r=50;t=30', '"burst";q=100;w=60,"daily";q=1000;w=86400;qu="requests";pk=:cHs=:'],
    'limit=100, remaining=50, reset=30',
  ];
  const words = [
    ';',
    ',',
    '=',
    '"',
    '\\',
    ':',
    '?1',
    ' ',
    '\t',
    'GMT',
    'r=',
    't=',
    'q=',
    'w=',
    'Feb 30',
    '-',
    'e',
    '\0',
  ];

  test(
    'parses any response headers without throwing, and keeps every value within its range',
    () => {
      const tried = fuzz(CASES, (random) => {
        const { mutate, pick, below } = makeMutator(random, values, words);
        const headers: string[] = [];
        for (let left = 1 + below(4); left > 0; left -= 1) headers.push(pick(names), mutate(pick(values)));
        const status = 100 + below(500);
        const hints = readHints(status, headers, WALL);
        const wrong = faultOf(hints);
        if (wrong !== undefined) throw new Error(`${wrong}: ${JSON.stringify({ status, headers, hints })}`);
      });
      expect(tried).toBeGreaterThanOrEqual(CASES);
    },
    FUZZ_TIMEOUT,
  );

  function faultOf({ retryAfterMs, quota, retryAdvice, reason, lock }: Hints): string | undefined {
    if (retryAfterMs !== undefined && !isWithin(retryAfterMs, 0, MAX_HINTED_DELAY)) return 'retryAfter';
    if (quota !== undefined) {
      if (!isWithin(quota.remaining, 0, Number.MAX_SAFE_INTEGER)) return 'remaining';
      if (!Number.isInteger(quota.remaining)) return 'a fraction remaining';
      if (quota.limit !== undefined && !isWithin(quota.limit, 1, Number.MAX_SAFE_INTEGER)) return 'limit';
      if (quota.resetIn !== undefined && !isWithin(quota.resetIn, 0, MAX_DELAY)) return 'resetIn';
      if (quota.window !== undefined && !isWithin(quota.window, Number.MIN_VALUE, MAX_DELAY)) return 'window';
    }
    if (retryAdvice !== undefined && retryAdvice !== 'retry' && retryAdvice !== 'never') return 'verdict';
    if (reason !== undefined && !/^[\w.:-]{1,64}$/.test(reason)) return 'reason';
    return lock && reason?.toLowerCase() !== 'resource-specific' ? 'lock' : undefined;
  }

  /** Excludes NaN and −0, which would divide to −Infinity. */
  function isWithin(value: number, min: number, max: number): boolean {
    return value >= min && value <= max && !Object.is(value, -0);
  }
});

describe('config', () => {
  const forms = [
    ...['250ms', '2s', '1.5h', '100/s', '5/m', '64KiB', '1MiB', '0', '127.0.0.1:8080', '[::]:9464', 'unix:/run/x.sock'],
    ...['header:x-api-key', 'bearer', 'ip', 'path:2', 'https://api.example.com:8443', 'practice'],
  ];
  const parts = [
    ...'0123456789.:/-_[]@#%?&= \t\n\0'.split(''),
    'ms',
    'KiB',
    '/s',
    'http://',
    'unix:',
    'header:',
    'localhost',
    'e5',
  ];

  test(
    'parses each value, or reports the expected form',
    () => {
      const readers = [
        parseDuration,
        parseRate,
        parseSize,
        parseByteRate,
        parseListenAddress,
        parseClientKey,
        parseUpstreamUrl,
      ];
      const tried = fuzz(CASES, (random) => {
        const { mutate, pick } = makeMutator(random, forms, parts);
        const text = mutate(pick(forms));
        for (const read of readers) {
          const reading = read(text);
          const isSound = reading.ok
            ? reading.value !== undefined && !Number.isNaN(reading.value)
            : reading.message !== '';
          if (!isSound) throw new Error(`${read.name}: ${JSON.stringify({ text, reading })}`);
        }
      });
      expect(tried).toBeGreaterThanOrEqual(CASES);
    },
    FUZZ_TIMEOUT,
  );

  // Loading takes about 0.3 ms for a configuration of four lines and 5 ms for the examples, which determines this number.
  const LOADS = 10_000;
  const files = [
    'upstreams: {api: {url: "http://a"}}',
    'upstreams:\n  api:\n    url: http://a\n    retry: {attempts: 3, retryOn: [5xx, "429"]}\n    timeout: 10s\n',
    'listen: 0.0.0.0:1\nadmin: {listen: "1.2.3.4:5", token: 0123456789abcdef}\n',
    'clients: {key: [header:x-api-key, ip], trustedProxies: [10.0.0.0/8]}\n',
    'routes: [{path: /v1, upstream: a, methods: [GET]}, {path: /, upstream: b, host: x}]\n',
    `limits: &a {headers: 10s, bodyIdle: 30s}\ndrain: *a\nsecret: ${REFERENCE}\n`,
    '%YAML 1.2\n---\nmode: observe\n...\n---\nmode: enforce\n',
  ];
  const tokens = [
    ...[
      '\n',
      '  ',
      ': ',
      '- ',
      '{',
      '}',
      '[',
      ']',
      ',',
      '#',
      '&a ',
      '*a',
      '!!binary ',
      '|',
      '>-',
      '"',
      "'",
      '? ',
      '---\n',
      '\t',
    ],
    ...[
      '~',
      'true',
      '.inf',
      '.nan',
      '0x1',
      '2026-11-21',
      '<<: *a',
      '__proto__: 1',
      'constructor',
      '${',
      '}',
      REFERENCE,
      '\r\n',
    ],
    ...['upstreams:', 'url:', 'retry:', 'classes:', 'match:', '\0', '\ufeff', '\u2028', '\ud800'],
  ];
  const examples = ['tidegate.yaml', 'examples/gateway.yaml', 'examples/stripe-sidecar.yaml'].map((file) =>
    readFileSync(join(import.meta.dirname, '../../config', file), 'utf8'),
  );

  test(
    'loads a file, or reports all of its mistakes with their places',
    () => {
      const surroundings = { env: { SECRET: '0123456789abcdef' }, readFile: () => '0123456789abcdef\n' };
      const tryFile = (text: string): void => {
        const loaded = loadConfig(text, 'f.yaml', surroundings);
        if (loaded.kind === 'ok') return void formatEffectiveConfig(loaded.config, loaded.substituted);
        const lines = formatMistakes(loaded.mistakes).split('\n');
        const isReported =
          lines.length === loaded.mistakes.length && lines.every((line) => /^f\.yaml:\d+:\d+ ./.test(line));
        if (!isReported) throw new Error(JSON.stringify({ text, lines }));
      };
      const tried = fuzz(LOADS, (random) => {
        const { mutate, pick } = makeMutator(random, files, tokens);
        tryFile(mutate(pick(files)));
      });
      expect(tried).toBeGreaterThanOrEqual(LOADS);
      const long = fuzz(100, (random) => {
        const { mutate, pick } = makeMutator(random, examples, tokens);
        tryFile(mutate(pick(examples)));
      });
      expect(long).toBeGreaterThanOrEqual(100);
    },
    FUZZ_TIMEOUT,
  );
});
