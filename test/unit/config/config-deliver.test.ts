import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { runCheck } from '../../../src/cli/check/check-command.ts';
import { compileDelivery } from '../../../src/config/compile/compile-delivery.ts';
import { diffConfigs } from '../../../src/config/load/config-diff.ts';
import { formatEffectiveConfig } from '../../../src/config/load/effective-config.ts';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import { formatMistakes, formatWarnings } from '../../../src/config/load/mistakes.ts';
import type { Config } from '../../../src/config/schema/config-schema.ts';
import { divideConfig } from '../../../src/config/compile/divide-config.ts';
import { configJsonSchema } from '../../../src/config/schema/json-schema.ts';

const SECRET = 'secret: 0123456789abcdef\n';
const SQLITE = `${SECRET}state: {store: sqlite, file: /var/lib/tidegate/state.db}\n`;
const environment = { env: {}, readFile: String };

const written = (route: string, rest = SQLITE) =>
  `${rest}upstreams: {shop: {url: http://a}}\nroutes: [{path: /webhooks, upstream: shop, ${route}}]\n`;

function load(route: string, rest?: string) {
  const loaded = loadConfig(written(route, rest), 'f.yaml', environment);
  if (loaded.kind === 'mistakes') throw new Error(formatMistakes(loaded.mistakes));
  return loaded;
}

function mistakes(route: string, rest?: string): string[] {
  const loaded = loadConfig(written(route, rest), 'f.yaml', environment);
  return loaded.kind === 'ok' ? [] : strip(formatMistakes(loaded.mistakes));
}

const warnings = (route: string) => strip(formatWarnings(load(route).warnings));

function strip(lines: string): string[] {
  return lines === ''
    ? []
    : lines.split('\n').map((line) => line.replace(/^f\.yaml:\d+:\d+ (?:warning: )?routes\[0\]\./, ''));
}

const policyOf = ({ routes }: Config) => compileDelivery(routes[0]?.deliver);
const policy = (deliver: string) => policyOf(load(`deliver: {${deliver}}`).config);

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

test('workers divide the concurrency with Redis only: with SQLite, the primary bounds it', () => {
  const divided = (rest: string, route: string, workers: number): unknown => {
    const [{ deliver, async } = {}] = divideConfig(load(route, rest).config, workers).routes;
    return (deliver ?? async)?.concurrency;
  };
  const redis = `${SECRET}state: {store: redis, url: redis://a}\n`;
  expect([divided(redis, 'deliver: {concurrency: 9}', 4), divided(redis, 'deliver: {concurrency: 3}', 4)]).toEqual([
    2, 1,
  ]);
  expect(divided(SQLITE, 'deliver: {concurrency: 9}', 4)).toBe(9);
});

describe('the defaults', () => {
  test('deliver nothing unless a route does', () => {
    expect(policyOf(load('retry: {}').config)).toBeUndefined();
  });

  test('retry for three days, respond with 202 and take any 2xx for an acknowledgement', () => {
    const byDefault = policy('');
    expect(byDefault).toMatchObject({
      respond: { status: 202, body: undefined },
      eventId: undefined,
      orderBy: undefined,
      deduplicateFor: DAY,
      concurrency: 10,
      maxBody: 1024 ** 2,
      keepFor: { delivered: 7 * DAY, dead: 7 * DAY },
      schedule: { total: 3 * DAY, endsAfterTotal: true },
    });
    expect([...(byDefault?.acknowledgement.statuses ?? [])]).toEqual(Array.from({ length: 100 }, (_, i) => 200 + i));
    expect(byDefault?.acknowledgement.body).toBeUndefined();
    expect([0, 5, 15].map((n) => byDefault?.schedule.delay(n, () => 0.5))).toEqual([10_000, 320_000, 6 * HOUR]);
    expect(load('deliver: {}').config.limits).toMatchObject({ deliveries: 1_000_000, deliveryBytes: 1024 ** 3 });
    expect(warnings('deliver: {}')).toEqual([]);
  });

  test('apply to the omitted options of a schedule, unless it names another strategy', () => {
    const schedule = (options: string) => policy(`schedule: {${options}}`)?.schedule;
    expect(schedule('baseInterval: 1m')?.band(20)?.max).toBe(6 * HOUR);
    expect(schedule('total: 30d')?.total).toBe(30 * DAY);
    expect(schedule('strategy: fixed, baseInterval: 1h')).toMatchObject({ total: 3 * DAY });
    expect(schedule('strategy: fixed, baseInterval: 1h')?.delay(5, () => 0)).toBe(HOUR);
  });
});

describe('a schedule', () => {
  test('is a list of delays', () => {
    const schedule = policy('schedule: {delays: [5m, 1h, 12h]}')?.schedule;
    expect([0, 1, 2, 3].map((n) => schedule?.delay(n, () => 0))).toEqual([300_000, HOUR, 12 * HOUR, undefined]);
  });

  test('is that of a provider', () => {
    expect(policy('schedule: alipay')?.schedule.delay(6, () => 0)).toBe(15 * HOUR);
    expect(policy('schedule: wechat-pay')?.schedule.total).toBe(24 * HOUR + 240_000);
  });
});

test('a configuration in effect has the same meaning, and is valid against the JSON Schema', () => {
  const validate = new Ajv2020().compile(configJsonSchema());
  for (const deliver of [
    '',
    'schedule: alipay, respond: {status: 200, body: success}, acknowledgedBy: {body: {equals: success}}',
    'schedule: {delays: [90m, 36h]}, eventId: {header: Webhook-Id}, orderBy: {json: a.b}, keepFor: {dead: 30d}',
    'schedule: {strategy: fibonacci, baseInterval: 1m, maxInterval: 1h, total: 90h}, maxBody: 64KiB, concurrency: 1',
    'acknowledgedBy: {status: [2xx, 409], body: {json: code, equals: false}}, deduplicateFor: 3d, eventId: {json: id}',
  ]) {
    const text = written(`deliver: {${deliver}}`);
    const { config } = load(`deliver: {${deliver}}`);
    const printed = formatEffectiveConfig(config).replace('"***"', '0123456789abcdef');
    for (const each of [text, printed]) {
      validate(parse(each));
      expect(validate.errors).toBeNull();
    }
    const again = loadConfig(printed, 'f.yaml', environment);
    const meaning = again.kind === 'ok' ? again.config : formatMistakes(again.mistakes);
    expect(meaning).toMatchObject({ routes: config.routes, limits: config.limits, state: config.state });
  }
});

test('an acknowledgement is compiled to the statuses and the condition on the body', () => {
  const rule = (acknowledgedBy: string) => policy(`acknowledgedBy: {${acknowledgedBy}}`)?.acknowledgement;
  expect(rule('status: 200')).toEqual({ statuses: new Set([200]), body: undefined });
  expect(rule('status: ["200", 409]')?.statuses).toEqual(new Set([200, 409]));
  expect(rule('status: [2xx, 409]')?.statuses.size).toBe(101);
  expect(rule('body: {json: data.code, equals: SUCCESS}')?.body).toEqual({
    kind: 'json',
    path: ['data', 'code'],
    equals: 'SUCCESS',
  });
  expect(rule('body: {json: code, equals: 0}')?.body).toMatchObject({ equals: 0 });
  expect(rule('body: {equals: " success "}')?.body).toEqual({ kind: 'text', equals: 'success' });
});

test('the parts of a request are found in a header or in a JSON body', () => {
  expect(policy('eventId: {header: Webhook-Id}, orderBy: {json: data.object.id}')).toMatchObject({
    eventId: { kind: 'header', name: 'webhook-id' },
    orderBy: { kind: 'json', path: ['data', 'object', 'id'] },
  });
});

const KEY = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

test('secrets of signatures are decoded, and never printed', () => {
  expect(policy('')?.signingKeys).toBeUndefined();
  expect(policy(`sign: {secrets: [${KEY}]}`)?.signingKeys).toEqual([Buffer.from(KEY.slice(6), 'base64')]);
  expect(formatEffectiveConfig(load(`deliver: {sign: {secrets: [${KEY}]}}`).config)).not.toContain(KEY);
  const [change] = diffConfigs(load('deliver: {}'), load(`deliver: {sign: {secrets: [${KEY}]}}`));
  expect(change).toMatchObject({ path: 'routes["/webhooks"].deliver.sign', needsRestart: false });
  expect(JSON.stringify(change)).not.toContain(KEY);
});

describe('mistakes', () => {
  test.each([
    ['sign: {}', 'sign.secrets: missing'],
    ['sign: {secrets: []}', 'sign.secrets: must not be empty'],
    ['sign: {secrets: [abc]}', 'sign.secrets[0]: expected whsec_, followed by base64'],
    ['sign: {secrets: [whsec_abcd]}', 'sign.secrets[0]: shorter than 24 bytes: a part of the secret is missing'],
    [`sign: {secrets: [${KEY}, ${KEY}]}`, 'sign.secrets: the same secret twice'],
    [
      'schedule: {total: 10s}',
      'schedule.total: may make no second attempt: the first delay can be 15s, which is longer than total',
    ],
    [
      'schedule: {strategy: fixed, baseInterval: 96h}',
      'schedule: may make no second attempt: the first delay can be 4d, which is longer than total',
    ],
    [
      'schedule: [5m, 1h]',
      'schedule: expected one of stripe, alipay, wechat-pay, standard-webhooks, or a mapping with strategy and total, or with delays',
    ],
    ['schedule: {baseInterval: 7h}', 'schedule.baseInterval: maxInterval is below baseInterval'],
    [
      'schedule: {delays: [5m], total: 72h}',
      'schedule.total: cannot be combined with delays, which are the whole schedule: it ends with the last of them',
    ],
    [
      'schedule: {delays: [5m], strategy: fixed}',
      'schedule.strategy: cannot be combined with delays, which are the whole schedule: it ends with the last of them',
    ],
    ['schedule: {delays: []}', 'schedule.delays: must not be empty'],
    ['schedule: {delays: [500ms]}', 'schedule.delays[0]: must be at least 1s'],
    ['schedule: {delays: [5]}', 'schedule.delays[0]: a duration needs a unit (did you mean 5ms or 5s?)'],
    [
      'schedule: alipai',
      'schedule: expected one of stripe, alipay, wechat-pay, standard-webhooks, or a mapping (did you mean alipay?)',
    ],
    [
      'schedule: {strategy: exponental}',
      /^deliver\.schedule\.strategy: expected one of .*\(did you mean exponential\?\)$/,
    ],
    ['schedule: {totl: 72h}', 'schedule.totl: unknown key (did you mean total?)'],
    [
      'respond: {status: 302}',
      'respond.status: must be from 200 to 299: a sender repeats a request that gets another status',
    ],
    ['respond: {status: 204, body: ok}', 'respond.body: a response with status 204 has no body: use status 200'],
    ['respond: {body: ok, contentType: text}', 'respond.contentType: expected a media type such as application/json'],
    [
      'acknowledgedBy: {status: 2XX}',
      'acknowledgedBy.status: expected 2xx, or a status from 200 to 499 (did you mean 2xx?)',
    ],
    ['acknowledgedBy: {status: 500}', 'acknowledgedBy.status: a 5xx is a failure: it acknowledges nothing'],
    [
      'acknowledgedBy: {status: [200, 429]}',
      'acknowledgedBy.status[1]: a 429 is a rejection by the rate limit: it acknowledges nothing',
    ],
    [
      'acknowledgedBy: {body: {equals: 1}}',
      'acknowledgedBy.body.equals: expected text: put it in quotes, because without json the whole body is compared',
    ],
    [
      'acknowledgedBy: {body: {equals: " "}}',
      'acknowledgedBy.body.equals: must not be empty: without json, white space around a body does not count',
    ],
    [
      'acknowledgedBy: {body: {json: a..b, equals: x}}',
      'acknowledgedBy.body.json: expected the name of a field, or names with dots between: a.b',
    ],
    ['eventId: {}', 'eventId: expected either header or json'],
    ['eventId: {header: a, json: b}', 'eventId: expected either header or json'],
    ['orderBy: {header: "a b"}', 'orderBy.header: not a header name'],
    ['concurrency: 0', 'concurrency: must be at least 1'],
    ['keepFor: {dead: 0s}', 'keepFor.dead: must be longer than 0'],
    ['maxBody: 0', 'maxBody: must be above 0'],
    ['acknowledgement: {}', /^deliver\.acknowledgement: unknown key/],
  ])('%s', (deliver, expected) => {
    const found = mistakes(`deliver: {${deliver}}`);
    expect(found).toHaveLength(1);
    if (typeof expected === 'string') expect(found[0]).toBe(`deliver.${expected}`);
    else expect(found[0]).toMatch(expected);
  });
});

describe('a delivering route needs', () => {
  const needed = (rest: string, route = 'deliver: {}') => mistakes(route, rest);
  const STORE =
    'deliver: needs state: {store: sqlite, file: …} or {store: redis, url: …}, where a delivery is stored before it is answered';

  test('a database or Redis', () => {
    expect(needed(SECRET)).toEqual([STORE]);
    expect(needed(`${SECRET}state: {store: memory}\n`)).toEqual([STORE]);
    expect(needed(`${SECRET}state: {store: redis, url: redis://a}\n`)).toEqual([]);
  });

  test('a secret, with which stored requests are encrypted', () => {
    expect(needed('state: {store: sqlite, file: /a.db}\n')).toEqual([
      'deliver: needs secret, at the top level: stored requests are encrypted with it',
    ]);
  });

  test.each(['2', 'auto'])('no certain number of workers: %s', (workers) => {
    expect(needed(`${SQLITE}workers: ${workers}\n`)).toEqual([]);
  });

  test('no certain number of workers with Redis', () => {
    expect(needed(`${SECRET}state: {store: redis, url: redis://a}\nworkers: 2\n`)).toEqual([]);
  });

  test('the mode enforce', () => {
    expect(needed(`${SQLITE}mode: observe\n`)).toEqual([
      'deliver: cannot be combined with mode: observe, which forwards every request at once and stores none',
    ]);
  });

  test('a valid place for all this even if another key of it is wrong', () => {
    expect(needed(SECRET, 'deliver: {concurrency: 0}')).toEqual([STORE, 'deliver.concurrency: must be at least 1']);
  });
});

test.each([
  [
    'poll: {}',
    'poll: cannot be combined with deliver: the client gets its response before the upstream has the request',
  ],
  [
    'cors: {origins: ["https://a"]}',
    'cors: cannot be combined with deliver, which accepts requests of servers, not of pages',
  ],
])('a delivering route has no %s', (other, expected) => {
  expect(mistakes(`deliver: {}, ${other}`)).toEqual([expected]);
});

test('a delivering route is not for checks only, and may leave CORS to the upstream', () => {
  const check = `${SQLITE}clients: {trustedProxies: [127.0.0.1]}\ncheck: {unrouted: pass}\n`;
  expect(mistakes('deliver: {}, check: only', check)).toEqual([
    'check: cannot be combined with deliver: a check is answered and not stored',
  ]);
  expect(mistakes('deliver: {}, cors: pass-through')).toEqual([]);
});

test('settings that have no effect, or cost much, are reported', () => {
  expect(warnings('deliver: {deduplicateFor: 1h}')).toEqual([
    'deliver.deduplicateFor: has no effect without eventId, which says where a request has its id',
  ]);
  expect(warnings('deliver: {deduplicateFor: 1h, eventId: {json: id}}')).toEqual([]);
  expect(warnings('deliver: {respond: {contentType: text/html}}')).toEqual([
    'deliver.respond.contentType: has no effect without body',
  ]);
  expect(warnings('deliver: {schedule: {jitterInterval: 1s}}')).toEqual([
    'deliver.schedule.jitterInterval: exponential-jitter does not use it',
  ]);
  expect(warnings('deliver: {schedule: {strategy: full-jitter}}')).toEqual([
    'deliver.schedule: more than 500 attempts for each delivery before total is over: choose longer delays',
  ]);
  expect(warnings('deliver: {schedule: {total: 31d}}')).toEqual([
    'deliver.schedule: a delivery is dead after limits.deliveryAge (30d), before its schedule is over',
  ]);
  expect(warnings('deliver: {schedule: {total: 30d}}')).toEqual([]);
});

describe('check', () => {
  const report = (deliver: string) =>
    runCheck('f.yaml', { full: false }, { env: {}, readFile: () => written(`deliver: {${deliver}}`) }).text;

  test('prints the schedule of a backoff: its first attempts, the last one and the total', () => {
    expect(report('')).toContain(`  /webhooks → shop
    response: 202 once the request is stored
    delivery: at once, then on average 10s, 20s, 40s, 1m20s, 2m40s, 5m20s, 10m40s, 21m20s … after each attempt that is not acknowledged
      about 24 attempts; the last one about 68h34m after the first, at most 72h
      acknowledged by a response with status 2xx
      kept for 7d once delivered, and for 7d if no attempt is acknowledged
`);
  });

  test('prints the schedule of a provider, and what acknowledges', () => {
    const alipay = report('schedule: alipay, acknowledgedBy: {body: {equals: success}}, respond: {status: 200}');
    expect(alipay).toContain('    response: 200 once the request is stored\n');
    expect(alipay).toContain(
      `    delivery: at once, then 4m, 10m, 10m, 1h, 2h, 6h, 15h after each attempt that is not acknowledged (alipay)
      8 attempts; the last one 24h24m after the first, and the time that the others took
      acknowledged by a response with status 2xx in which the body is "success"
`,
    );
    expect(report('acknowledgedBy: {status: [200, 204], body: {json: code, equals: 0}}')).toContain(
      'acknowledged by a response with status 200 or 204 in which code in its body is 0\n',
    );
  });

  test('says that attempts are signed, and never prints the secrets', () => {
    const other = KEY.replace('MfKQ', 'AAAA');
    const text = report(`sign: {secrets: [${KEY}, ${other}]}`);
    expect(text).toContain(
      'signed at each attempt as Standard Webhooks, with each of 2 secrets, in place of a signature of the sender\n',
    );
    expect(text).not.toMatch(/MfKQ|AAAA/);
  });

  test('does not count attempts without end', () => {
    expect(report('schedule: {strategy: fixed, baseInterval: 1s}')).toContain(
      'more than 500 attempts; the last one at most 72h after the first\n',
    );
  });

  test('does not describe a client that waits for the upstream', () => {
    expect(report('')).not.toContain('clients: should wait');
  });
});

test('a reload applies changes of deliver without a restart, but not of its bounds', () => {
  const changes = diffConfigs(load('deliver: {}'), load('deliver: {concurrency: 5, schedule: {total: 1d}}'));
  expect(changes.map(({ path, needsRestart }) => [path, needsRestart])).toEqual([
    ['routes["/webhooks"].deliver.schedule.strategy', false],
    ['routes["/webhooks"].deliver.schedule.baseInterval', false],
    ['routes["/webhooks"].deliver.schedule.maxInterval', false],
    ['routes["/webhooks"].deliver.schedule.total', false],
    ['routes["/webhooks"].deliver.concurrency', false],
  ]);
  const age = diffConfigs(load('deliver: {}'), load('deliver: {}', `${SQLITE}limits: {deliveryAge: 60d}\n`));
  expect(age).toMatchObject([{ path: 'limits.deliveryAge', from: '30d', to: '60d', needsRestart: false }]);
  const bounds = diffConfigs(load('deliver: {}'), load('deliver: {}', `${SQLITE}limits: {deliveries: 5}\n`));
  expect(bounds).toMatchObject([{ path: 'limits.deliveries', needsRestart: true }]);
});
