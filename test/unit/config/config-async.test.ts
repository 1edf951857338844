import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { runCheck } from '../../../src/cli/check/check-command.ts';
import { compileAsyncWrites } from '../../../src/config/compile/compile-async-writes.ts';
import { formatEffectiveConfig } from '../../../src/config/load/effective-config.ts';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import { formatMistakes, formatWarnings } from '../../../src/config/load/mistakes.ts';
import { configJsonSchema } from '../../../src/config/schema/json-schema.ts';

const SQLITE = 'secret: 0123456789abcdef\nstate: {store: sqlite, file: /var/lib/tidegate/state.db}\n';
const environment = { env: {}, readFile: String };

interface Written {
  readonly async: string;
  /** Other keys of the route. */
  readonly route?: string;
  readonly upstream?: string;
  readonly rest?: string;
}

const write = ({ async: written, route = '', upstream = '', rest = SQLITE }: Written) =>
  `${rest}upstreams: {psp: {url: http://a${upstream}}}\nroutes: [{path: /v1, upstream: psp, async: {${written}}${route}}]\n`;

function load(written: Written) {
  const loaded = loadConfig(write(written), 'f.yaml', environment);
  if (loaded.kind === 'mistakes') throw new Error(formatMistakes(loaded.mistakes));
  return loaded;
}

function strip(lines: string): string[] {
  const each = lines === '' ? [] : lines.split('\n');
  return each.map((line) => line.replace(/^f\.yaml:\d+:\d+ (?:warning: )?routes\[0\]\./, ''));
}

function mistakes(written: Written): string[] {
  const loaded = loadConfig(write(written), 'f.yaml', environment);
  return loaded.kind === 'ok' ? [] : strip(formatMistakes(loaded.mistakes));
}

const warnings = (written: Written) => strip(formatWarnings(load(written).warnings));
const policy = (written: string) => compileAsyncWrites(load({ async: written }).config.routes[0]?.async);

const HOUR = 3_600_000;

test('the defaults try for an hour, and keep responses of 64 KiB for a day', () => {
  const byDefault = policy('');
  expect(byDefault).toMatchObject({
    ...{ deduplicateFor: 24 * HOUR, concurrency: 10, maxResponse: 65_536 },
    keepFor: { done: 24 * HOUR, failed: 168 * HOUR },
    schedule: { total: HOUR, endsAfterTotal: true },
  });
  expect([0, 3, 15].map((n) => byDefault?.schedule.delay(n, () => 0.5))).toEqual([5000, 40_000, 300_000]);
  expect(warnings({ async: '' })).toEqual([]);
  expect(compileAsyncWrites(undefined)).toBeUndefined();
});

test('a schedule is a backoff with the defaults for what it leaves out, or a list', () => {
  expect(policy('schedule: {total: 2h}')?.schedule).toMatchObject({ total: 2 * HOUR });
  expect(policy('schedule: {baseInterval: 1m}')?.schedule.band(20)?.max).toBe(300_000);
  expect(policy('schedule: {delays: [1s, 5m]}')?.schedule.delay(1, () => 0)).toBe(300_000);
});

test('a configuration in effect has the same meaning, and is valid against the JSON Schema', () => {
  const validate = new Ajv2020().compile(configJsonSchema());
  for (const written of ['', 'schedule: {delays: [1s]}, maxResponse: 1MiB, keepFor: {done: 30h}, concurrency: 2']) {
    const { config } = load({ async: written });
    const printed = formatEffectiveConfig(config).replace('"***"', '0123456789abcdef');
    for (const each of [write({ async: written }), printed]) {
      validate(parse(each));
      expect(validate.errors).toBeNull();
    }
    const again = loadConfig(printed, 'f.yaml', environment);
    expect(again.kind === 'ok' && again.config.routes).toEqual(config.routes);
  }
});

describe('async is a mistake', () => {
  test.each<[string, Written, RegExp]>([
    ['without a place to store', { async: '', rest: 'secret: 0123456789abcdef\n' }, /^async: needs state: \{store/],
    ['without a secret', { async: '', rest: SQLITE.replace(/^.*\n/, '') }, /^async: needs secret/],
    ['with deliver', { async: '', route: ', deliver: {}' }, /^async: cannot be combined with deliver/],
    ['with poll', { async: '', route: ', poll: {}' }, /^poll: cannot be combined with async/],
    [
      'with an upstream that does not recognise keys',
      { async: '', upstream: ', idempotency: {header: false}' },
      /^async: needs an upstream that recognises idempotency keys/,
    ],
    [
      'with a schedule that is longer than keys are remembered',
      { async: 'schedule: {total: 7h}', upstream: ', idempotency: {ttl: 6h}' },
      /^async\.schedule: takes 7h, which is longer than the upstream remembers keys \(idempotency\.ttl: 6h\)/,
    ],
    [
      'with a schedule that is longer than some keys are remembered',
      { async: '', upstream: ', idempotency: {ttl: [{path: /a, ttl: 30m}, {path: /b, ttl: 45d}]}' },
      /^async\.schedule: takes 1h.*ttl: 30m/,
    ],
    [
      'with repeats that are not recognised as long as it is sent',
      { async: 'deduplicateFor: 30m' },
      /^async\.deduplicateFor: must be at least as long as the schedule, which takes 1h/,
    ],
    [
      'with an impossible schedule',
      { async: 'schedule: {delays: [1s], total: 1h}' },
      /^async\.schedule\.total: cannot/,
    ],
    ['with a name as the schedule', { async: 'schedule: stripe' }, /^async\.schedule: /],
    ['with too long responses', { async: 'maxResponse: 17MiB' }, /^async\.maxResponse: must be at most 16MiB/],
    ['with an unknown key', { async: 'schedul: {}' }, /^async\.schedul: .*schedule/],
  ])('%s', (_what, written, message) => {
    const found = mistakes(written);
    expect(found.filter((each) => message.test(each))).toEqual(found);
    expect(found).toHaveLength(1);
  });
});

describe('async has a warning', () => {
  test('on a route without writes', () => {
    expect(warnings({ async: '', route: ', methods: [GET]' })).toEqual([
      'async: has no effect: no method of the route is POST, PUT, PATCH or DELETE',
    ]);
  });

  test('if a repeat is recognised longer than its write is kept', () => {
    expect(warnings({ async: 'deduplicateFor: 2d' })).toEqual([
      'async.deduplicateFor: deduplicateFor is longer than keepFor.done: a later repeat gets the Location of a write that is no longer stored',
    ]);
    expect(warnings({ async: 'keepFor: {done: 2h}' })).toEqual([expect.stringMatching(/^async\.keepFor\.done: /)]);
  });
});

test('a callback is sent by a route with deliver', () => {
  const beside = (callback: string, more = ', deliver: {}') =>
    mistakes({ async: `callback: ${callback}`, route: `}, {path: /callbacks, upstream: psp${more}` });
  expect(beside('/callbacks')).toEqual([]);
  expect(beside('/callback')).toEqual([
    'async.callback: no route with deliver has this name (did you mean /callbacks?)',
  ]);
  expect(beside('/callbacks', '')).toEqual([
    'async.callback: the route /callbacks has no deliver: a callback is stored and sent by one that has it',
  ]);
  const { config } = load({ async: 'callback: /callbacks', route: '}, {path: /callbacks, upstream: psp, deliver: {}' });
  expect(compileAsyncWrites(config.routes[0]?.async)?.callback).toBe('/callbacks');
});

test('writes that are sent later are stored in SQLite or Redis, by any number of workers', () => {
  const REDIS = 'secret: 0123456789abcdef\nstate: {store: redis, url: redis://a}\n';
  expect(mistakes({ async: '', rest: REDIS })).toEqual([]);
  expect(mistakes({ async: '', rest: `${REDIS}workers: 2\n` })).toEqual([]);
  expect(mistakes({ async: '', rest: REDIS.slice(REDIS.indexOf('state')) })).toEqual([
    'async: needs secret, at the top level: stored requests are encrypted with it',
  ]);
});

test('writes that replicas send later are not sent without Redis', () => {
  const REDIS = 'secret: 0123456789abcdef\nstate: {store: redis, url: redis://a}\n';
  const upstream = ', idempotency: {onStoreLost: local}';
  expect(mistakes({ async: '', upstream, rest: REDIS })).toEqual([
    'async: with state.store: redis, needs an upstream with idempotency.onStoreLost: refuse, so that no replica sends a write without Redis',
  ]);
  expect(mistakes({ async: '', upstream })).toEqual([]);
});

test('check prints the schedule beside the worst case of requests that are sent at once', () => {
  const { text } = runCheck('f.yaml', { full: false }, { env: {}, readFile: () => write({ async: '' }) });
  expect(text).toContain('sends: up to');
  expect(text).toContain(
    `    with Prefer: respond-async: 202 once the write is stored; sent at once, then on average 5s, 10s, 20s, 40s`,
  );
  expect(text).toContain(' after each attempt that leaves its outcome open\n');
  expect(text).toContain('; the last one about ');
  expect(text).toContain('kept for 1d once done, and for 7d if it has failed, or its outcome is unknown');
  expect(text).not.toContain('Tidegate-Callback');
});

test('check names the route for callbacks', () => {
  const written = write({ async: 'callback: /callbacks', route: '}, {path: /callbacks, upstream: psp, deliver: {}' });
  const { text } = runCheck('f.yaml', { full: false }, { env: {}, readFile: () => written });
  expect(text).toContain('      with Tidegate-Callback: its state is sent by /callbacks once it has ended\n');
});
