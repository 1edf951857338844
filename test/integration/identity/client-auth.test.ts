/** `clients.auth`: only requests of known clients reach the upstream, without the credentials that prove their names. */
import { describe, expect, test } from 'vitest';
import { fetchExplanation } from '../../support/admin/explanations.ts';
import { atEnd } from '../../support/at-end.ts';
import { makeCertificates } from '../../support/certificates.ts';
import { makeKeyFile } from '../../support/clients/api-keys.ts';
import { openHttp2, sendHttp2 } from '../../support/clients/http2-client.ts';
import { openRaw } from '../../support/clients/raw-socket.ts';
import { send, type Received, type Sent } from '../../support/clients/send.ts';
import { AUDIENCE, ISSUER, startIssuer, type TokenIssuer } from '../../support/clients/token-issuer.ts';
import { startApplication } from '../../support/proxy/fastify-application.ts';
import { eventually, startTidegate, type Tidegate } from '../../support/proxy/tidegate.ts';
import { startWorkers } from '../../support/proxy/workers.ts';
import { startRecordingUpstream } from '../../support/upstreams/recording-upstream.ts';

interface Setup {
  /** The content of `clients`. */
  readonly clients: string;
  readonly routes?: string;
  readonly upstream?: string;
  readonly more?: string;
}

async function start({ clients, routes = '[{upstream: api}]', upstream = '', more = '' }: Setup) {
  const api = await startRecordingUpstream();
  const gate = await startTidegate(
    `${more}\nupstreams: {api: {url: "${api.url}"${upstream}}}\nroutes: ${routes}\nclients: {${clients}}`,
  );
  return { api, gate, get: (sent: Sent = {}, path = '/'): Promise<Received> => send(gate.url, path, sent) };
}

const jwtOf = ({ url }: Pick<TokenIssuer, 'url'>): string =>
  `jwt: {issuer: "${ISSUER}", audience: [${AUDIENCE}], jwks: "${url}", algorithms: [ES256]}`;

const bearer = (token: string): Sent => ({ headers: ['Authorization', `Bearer ${token}`] });

function rejections(gate: Tidegate, reason: string): Promise<number> {
  return gate.metric(`tidegate_auth_rejected_total{reason="${reason}"}`);
}

describe('an API key', () => {
  test('identifies its client, and stays with Tidegate', async () => {
    const file = makeKeyFile('shop', 'shop', 'till');
    const { api, gate, get } = await start({ clients: `auth: {apiKeys: {file: ${file.path}}}` });
    const answers: Received[] = [];
    for (const key of file.keys) answers.push(await get({ headers: ['tidegate-key', key, 'X-Other', '1'] }));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(api.received.flatMap(({ rawHeaders }) => rawHeaders).join(' ')).not.toContain('tg_');
    expect(api.received[0]?.headers['x-other']).toBe('1');
    const log = await eventually(gate.requests, ({ length }) => length === 3);
    expect(log.map(({ clientName }) => clientName)).toEqual(['shop', 'shop', 'till']);
    expect(log[0]?.['client']).toBe(log[1]?.['client']);
    expect(log[0]?.['client']).not.toBe(log[2]?.['client']);
    const { client } = await fetchExplanation(gate, answers[0]?.header('tidegate-request-id'));
    expect(client).toEqual({ key: log[0]?.['client'], name: 'shop', identifiedBy: 'api_key' });
    const seen = `${JSON.stringify(gate.log())}${await (await fetch(`${gate.adminUrl}/metrics`)).text()}`;
    expect(seen).toContain('tidegate_client_requests_total{client="till",outcome="forwarded"} 1');
    for (const key of file.keys) expect(seen).not.toContain(key.slice(0, 15));
  });

  test('that is missing or wrong gets a 401 that does not say which', async () => {
    const file = makeKeyFile('shop');
    const [key = ''] = file.keys;
    const { api, gate, get } = await start({ clients: `auth: {apiKeys: {file: ${file.path}}}` });
    const missing = await get();
    expect(missing.status).toBe(401);
    expect(missing.header('www-authenticate')).toBe('ApiKey realm="tidegate", header="tidegate-key"');
    expect(missing.header('content-type')).toBe('application/problem+json');
    expect(missing.json()).toMatchObject({ status: 401, title: 'Unauthorized' });
    const [other = ''] = makeKeyFile('other').keys;
    const wrong = await get({ headers: ['Tidegate-Key', `${key.slice(0, 16)}${other.slice(16)}`] });
    const unknown = await get({ headers: ['Tidegate-Key', other] });
    expect([wrong.status, unknown.status]).toEqual([401, 401]);
    expect(wrong.json()['detail']).toBe(unknown.json()['detail']);
    expect((await get({ headers: ['Tidegate-Key', 'secret'] })).status).toBe(401);
    expect((await get({ headers: ['Tidegate-Key', key, 'Tidegate-Key', key] })).status).toBe(400);
    expect(api.received).toEqual([]);
    expect(await rejections(gate, 'missing')).toBe(1);
    expect(await rejections(gate, 'unknown_key')).toBe(2);
    expect(await rejections(gate, 'malformed')).toBe(1);
    const [line] = gate.requests();
    expect(line).toMatchObject({ status: 401, reason: 'unauthenticated', cause: 'missing' });
    expect(line).not.toHaveProperty('client');
    const explanation = await fetchExplanation(gate, missing.header('tidegate-request-id'));
    expect(JSON.stringify(explanation)).toContain('The request has no credential.');
  });

  test('is required before the body is read', async () => {
    const file = makeKeyFile('shop');
    const { gate } = await start({ clients: `auth: {apiKeys: {file: ${file.path}}}` });
    const socket = await openRaw(gate.url);
    socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\nExpect: 100-continue\r\n\r\n');
    const text = await socket.ended();
    expect(text).toMatch(/^HTTP\/1\.1 401 /);
    expect(text).toMatch(/connection: close/i);
  });

  test('is added and removed while Tidegate runs', async () => {
    const file = makeKeyFile('shop');
    const [first = ''] = file.keys;
    const { gate, get } = await start({ clients: `auth: {apiKeys: {file: ${file.path}}}` });
    const statusOf = async (key: string): Promise<number> => (await get({ headers: ['Tidegate-Key', key] })).status;
    expect(await statusOf(first)).toBe(200);
    const [second = ''] = file.replace('shop');
    await eventually(
      () => statusOf(second),
      (status) => status === 200,
    );
    expect(await statusOf(first)).toBe(401);
    expect(gate.log().map(({ msg }) => msg)).toContain('client authentication updated');
  });

  test('is rejected once it has expired, and its use before that is logged once', async () => {
    const file = makeKeyFile('shop');
    const day = 86_400_000;
    const [expired, soon, late] = [-1000, day, 30 * day].map((after) =>
      file.addExpiring(`till-${after}`, new Date(Date.now() + after)),
    );
    const { api, gate, get } = await start({ clients: `auth: {apiKeys: {file: ${file.path}}}` });
    const answers: Received[] = [];
    for (const key of [expired, soon, soon, late, file.keys[0]]) {
      answers.push(await get({ headers: ['Tidegate-Key', key ?? ''] }));
    }
    expect(answers.map(({ status }) => status)).toEqual([401, 200, 200, 200, 200]);
    expect(answers[0]?.json()).toMatchObject({ detail: 'The credential has expired. Request a new one.' });
    expect(api.received).toHaveLength(4);
    expect(await rejections(gate, 'expired')).toBe(1);
    const log = await eventually(gate.requests, ({ length }) => length === 5);
    expect(log[0]).toMatchObject({ status: 401, cause: 'expired' });
    const warnings = gate.log().filter(({ msg }) => msg === 'API key expires soon: give the client another one');
    expect(warnings).toEqual([
      expect.objectContaining({
        keyId: soon?.slice(3, 15),
        clientName: `till-${day}`,
        expiresAt: expect.stringMatching(/^20\d\d-/) as unknown,
      }),
    ]);
  });

  test('may be in Authorization, beside tokens', async () => {
    const [file, issuer] = [makeKeyFile('shop'), await startIssuer()];
    const auth = `auth: {apiKeys: {file: ${file.path}, header: Authorization}, ${jwtOf(issuer)}}`;
    const { api, get } = await start({ clients: auth });
    expect((await get(bearer(file.keys[0] ?? ''))).status).toBe(200);
    expect((await get(bearer(await issuer.issue('app')))).status).toBe(200);
    expect((await get({ headers: ['Authorization', 'Basic eDp5'] })).status).toBe(401);
    expect(api.received.map(({ headers }) => headers.authorization)).toEqual([undefined, undefined]);
  });
});

describe('a token', () => {
  test('is verified, and names its client', async () => {
    const issuer = await startIssuer();
    const { api, gate, get } = await start({ clients: `auth: {${jwtOf(issuer)}}` });
    expect((await get(bearer(await issuer.issue('app')))).status).toBe(200);
    const reasons = {
      expired: await issuer.issue('app', { expires: '-1h' }),
      not_yet_valid: await issuer.issue('app', { notBefore: '10m' }),
      wrong_issuer: await issuer.issue('app', { issuer: 'https://other' }),
      wrong_audience: await issuer.issue('app', { audience: 'other' }),
      no_name: await issuer.issue('two words'),
      bad_signature: `${(await issuer.issue('app')).slice(0, -20)}AAAAAAAAAAAAAAAAAAAA`,
      malformed: 'not-a-token',
      wrong_algorithm: `${Buffer.from('{"alg":"none"}').toString('base64url')}.e30.`,
    };
    for (const [reason, token] of Object.entries(reasons)) {
      const answer = await get(bearer(token));
      expect([reason, answer.status]).toEqual([reason, 401]);
      expect(answer.header('www-authenticate')).toBe('Bearer realm="tidegate", error="invalid_token"');
      expect([reason, await rejections(gate, reason)]).toEqual([reason, 1]);
    }
    expect(api.received).toHaveLength(1);
    expect(issuer.fetches()).toBe(1);
    expect(gate.requests()[0]).toMatchObject({ clientName: 'app', status: 200 });
    expect((await get()).header('www-authenticate')).toBe('Bearer realm="tidegate"');
  });

  test('by a key that is not in the JWKS is rejected without another fetch', async () => {
    const issuer = await startIssuer();
    const { get } = await start({ clients: `auth: {${jwtOf(issuer)}}` });
    const old = await issuer.issue('app');
    expect((await get(bearer(old))).status).toBe(200);
    await issuer.rotate();
    // The first fetch was a moment ago: a key id that is not known causes no other for half a minute.
    expect((await get(bearer(await issuer.issue('app')))).status).toBe(401);
    expect(issuer.fetches()).toBe(1);
  });

  test('is not accepted while no keys can be fetched', async () => {
    const issuer = await startIssuer();
    issuer.answerWith(503);
    const { api, gate, get } = await start({ clients: `auth: {${jwtOf(issuer)}}` });
    const answer = await get(bearer(await issuer.issue('app')));
    expect(answer.status).toBe(503);
    expect(answer.json()).toMatchObject({ title: 'Authentication unavailable' });
    expect(Number(answer.header('retry-after'))).toBeGreaterThanOrEqual(5);
    expect(await rejections(gate, 'keys_unavailable')).toBe(1);
    expect(gate.log()).toContainEqual(
      expect.objectContaining({ setting: 'clients.auth.jwt.jwks', problem: 'the JWKS URL answered 503' }),
    );
    expect(api.received).toEqual([]);
  });

  test('is verified by keys from a server with a certificate of its own, which gets a token', async () => {
    const certificates = makeCertificates();
    atEnd(() => certificates.remove());
    certificates.issue('server', '-addext', 'subjectAltName=IP:127.0.0.1');
    const { path, read } = certificates;
    const issuer = await startIssuer({ cert: read('server.crt'), key: read('server.key') });
    const [keyFile] = [makeKeyFile('any')];
    const jwt = (ca: string): string =>
      jwtOf(issuer).replace('algorithms', `ca: ${ca}, tokenFile: ${keyFile.path}, algorithms`);
    const { get } = await start({ clients: `auth: {${jwt(path('ca.crt'))}}` });
    expect((await get(bearer(await issuer.issue('app')))).status).toBe(200);
    expect(issuer.lastAuthorization()).toMatch(/^Bearer [0-9a-f]{12} sha256:/);
    const others = makeCertificates();
    atEnd(() => others.remove());
    const untrusting = await start({ clients: `auth: {${jwt(others.path('ca.crt'))}}` });
    expect((await untrusting.get(bearer(await issuer.issue('app')))).status).toBe(503);
    expect(issuer.fetches()).toBe(1);
  });

  test('stays accepted over a reload of other settings, without another fetch', async () => {
    const issuer = await startIssuer();
    const { api, gate, get } = await start({ clients: `auth: {${jwtOf(issuer)}}` });
    const token = await issuer.issue('app');
    expect((await get(bearer(token))).status).toBe(200);
    issuer.answerWith(503);
    const yaml = `upstreams: {api: {url: "${api.url}", timeout: 9s}}\nclients: {auth: {${jwtOf(issuer)}}}`;
    expect(await gate.rewrite(yaml)).toMatchObject({ kind: 'applied' });
    expect((await get(bearer(token))).status).toBe(200);
  });

  test('may be another one when a write is repeated', async () => {
    const issuer = await startIssuer();
    const { api, get } = await start({
      clients: `auth: {${jwtOf(issuer)}}`,
      upstream: ', idempotency: {replayAnswers: 1h}',
    });
    const post = async (client: string, jti: string): Promise<Received> => {
      const token = await issuer.issue(client, { claims: { jti } });
      const headers = ['Authorization', `Bearer ${token}`, 'Idempotency-Key', 'k'];
      return get({ method: 'POST', headers, body: '{}' });
    };
    expect((await post('app', '1')).status).toBe(200);
    expect((await post('app', '2')).status).toBe(200);
    expect(api.received).toHaveLength(1);
  });

  test('can be forwarded', async () => {
    const issuer = await startIssuer();
    const { api, get } = await start({ clients: `auth: {${jwtOf(issuer)}, forward: true}` });
    const token = await issuer.issue('app');
    expect((await get(bearer(token))).status).toBe(200);
    expect(api.received[0]?.headers.authorization).toBe(`Bearer ${token}`);
  });
});

describe('a known client', () => {
  test('gets a 403 for routes and methods that its class does not allow', async () => {
    const file = makeKeyFile('reader', 'writer');
    const [reader = '', writer = ''] = file.keys;
    const { api, gate, get } = await start({
      clients: `auth: {apiKeys: {file: ${file.path}}}, classes: {readers: {match: {key: [reader]}, allow: {routes: [/v1], methods: [GET]}}}`,
      routes: '[{path: /v1, upstream: api}, {path: /v2, upstream: api}]',
    });
    const status = async (key: string, method: string, path: string): Promise<number> =>
      (await get({ method, headers: ['Tidegate-Key', key] }, path)).status;
    expect(await status(reader, 'GET', '/v1')).toBe(200);
    expect(await status(reader, 'DELETE', '/v1')).toBe(403);
    expect(await status(reader, 'GET', '/v2')).toBe(403);
    expect(await status(writer, 'DELETE', '/v2')).toBe(200);
    expect(api.received).toHaveLength(2);
    expect(await rejections(gate, 'not_allowed')).toBe(2);
  });
});

describe('another spelling of a path', () => {
  test('does not lead around a credential or a permission', async () => {
    const file = makeKeyFile('reader');
    const { api, get } = await start({
      clients: `auth: {apiKeys: {file: ${file.path}}}, classes: {readers: {match: {key: [reader]}, allow: {routes: [/v1]}}}`,
      routes: '[{upstream: api, auth: none}, {path: /v1, upstream: api}, {path: /v1/admin, upstream: api}]',
    });
    const headers = ['Tidegate-Key', file.keys[0] ?? ''];
    for (const path of ['/V1', '/%76%31/x', '/v1;a=b/x', '/v1%3fa', '/v1%23a']) {
      expect((await get({}, path)).status).toBe(400);
    }
    for (const path of ['/v1/Admin', '/v1/%61dmin', '/v1/admin;x/y']) {
      expect((await get({ headers }, path)).status).toBe(400);
    }
    expect((await get({}, '/v1/x')).status).toBe(401);
    expect((await get({ headers }, '/v1/admin')).status).toBe(403);
    expect(api.received).toEqual([]);
    expect((await get({ headers }, '/v1/administrators')).status).toBe(200);
    expect((await get({}, '/v2')).status).toBe(200);
  });
});

describe('no credential', () => {
  test('is needed by routes with auth: none, by preflights that Tidegate answers, and by health endpoints', async () => {
    const file = makeKeyFile('shop');
    const { api, gate, get } = await start({
      clients: `auth: {apiKeys: {file: ${file.path}}}`,
      routes: `[{path: /hooks, upstream: api, auth: none}, {path: /pages, upstream: api, cors: {origins: ["https://a.example"]}}, {upstream: api}]`,
    });
    const preflight: Sent = {
      method: 'OPTIONS',
      headers: ['Origin', 'https://a.example', 'Access-Control-Request-Method', 'POST'],
    };
    expect((await get({}, '/hooks')).status).toBe(200);
    expect((await get(preflight, '/pages')).status).toBe(204);
    expect(
      (await get({ headers: ['Origin', 'https://a.example'] }, '/pages')).header('access-control-allow-origin'),
    ).toBe('https://a.example');
    // The upstream would answer this one.
    expect((await get(preflight, '/other')).status).toBe(401);
    expect((await fetch(`${gate.adminUrl}/livez`)).status).toBe(200);
    expect(api.received).toHaveLength(1);
  });
});

describe('a WebSocket', () => {
  test('needs a credential before the upgrade', async () => {
    const issuer = await startIssuer();
    const { gate } = await start({ clients: `auth: {${jwtOf(issuer)}}` });
    const upgrade = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n';
    const key = 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n';
    const refused = await openRaw(gate.url);
    refused.write(`${upgrade}${key}\r\n`);
    expect(await refused.until('\r\n\r\n')).toMatch(/^HTTP\/1\.1 401 /);
    const accepted = await openRaw(gate.url);
    accepted.write(`${upgrade}${key}Authorization: Bearer ${await issuer.issue('app')}\r\n\r\n`);
    expect(await accepted.until('\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 /); // the upstream does not upgrade
  });
});

describe('a body that cannot be parsed', () => {
  test('is rejected while a token is being verified', async () => {
    const issuer = await startIssuer();
    const { api, gate } = await start({ clients: `auth: {${jwtOf(issuer)}}` });
    const token = await issuer.issue('app');
    const client = await openRaw(gate.url);
    client.write(
      `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nAuthorization: Bearer ${token}\r\n\r\nnot a chunk\r\n`,
    );
    expect(await client.ended()).toMatch(/^HTTP\/1\.1 400 /);
    expect(api.received).toEqual([]);
  });
});

describe('checks of an ingress', () => {
  test('have the status that the ingress passes on', async () => {
    const file = makeKeyFile('shop');
    const { gate } = await start({
      clients: `auth: {apiKeys: {file: ${file.path}}}, trustedProxies: [127.0.0.1]`,
      more: 'check: {}',
    });
    const check = (query: string, headers: readonly string[]): Promise<Received> => send(gate.url, query, { headers });
    const original = ['X-Original-Uri', '/v1'];
    const refused = await check('/check?dialect=nginx', original);
    expect([refused.status, refused.header('www-authenticate')]).toEqual([401, expect.stringContaining('ApiKey')]);
    const traefik = ['X-Forwarded-Uri', '/v1'];
    const unauthorized = await check('/check', traefik);
    expect(unauthorized.status).toBe(401);
    expect(unauthorized.header('www-authenticate')).toContain('ApiKey');
    expect((await check('/check', [...traefik, 'Tidegate-Key', file.keys[0] ?? ''])).status).toBe(200);
  });
});

test('checks of preflights need a credential and a permission where the application would get the preflight', async () => {
  const file = makeKeyFile('shop', 'till');
  const [shop = '', till = ''] = file.keys;
  const { gate } = await start({
    clients: `auth: {apiKeys: {file: ${file.path}}}, trustedProxies: [127.0.0.1], classes: {tills: {match: {key: [till]}, allow: {routes: [/till]}}}`,
    routes: `[{path: /v1, upstream: api}, {path: /till, upstream: api}, {path: /open, upstream: api, auth: none}, {path: /pages, upstream: api, cors: {origins: ["https://a.example"]}}]`,
    more: 'check: {}',
  });
  const preflight = ['X-Forwarded-Method', 'OPTIONS', 'Origin', 'https://a.example'];
  const check = async (path: string, key?: string): Promise<readonly [number, string | undefined]> => {
    const headers = ['X-Forwarded-Uri', path, ...preflight, 'Access-Control-Request-Method', 'POST'];
    const answer = await send(gate.url, '/check', {
      headers: key === undefined ? headers : [...headers, 'Tidegate-Key', key],
    });
    return [answer.status, answer.header('tidegate-preflight')];
  };
  expect(await check('/v1')).toEqual([401, undefined]);
  expect(await check('/v1', till)).toEqual([403, undefined]);
  expect(await check('/v1', shop)).toEqual([200, 'true']);
  expect(await check('/open')).toEqual([200, 'true']);
  expect(await check('/pages')).toEqual([200, 'true']);
});

test('checks never have a 5xx because tokens cannot be verified, which an ingress may take as permission', async () => {
  const issuer = await startIssuer();
  issuer.answerWith(500);
  const { gate } = await start({
    clients: `auth: {${jwtOf(issuer)}}, trustedProxies: [127.0.0.1]`,
    more: 'check: {}',
  });
  const { headers = [] } = bearer(await issuer.issue('app'));
  const checks = [
    ['/check', 'X-Forwarded-Uri'],
    ['/check/v1?dialect=envoy', 'X-Other'],
    ['/check?dialect=nginx', 'X-Original-Uri'],
  ] as const;
  const statuses: number[] = [];
  for (const [path, name] of checks) {
    statuses.push((await send(gate.url, path, { headers: [name, '/v1', ...headers] })).status);
  }
  expect(statuses).toEqual([429, 429, 403]);
});

describe('a program that mounts the proxy', () => {
  test('keeps the header of the credential, which the upstream does not get', async () => {
    const file = makeKeyFile('shop');
    const api = await startRecordingUpstream();
    const seen: unknown[] = [];
    const { url } = await startApplication(
      { config: { upstreams: { api: { url: api.url } }, clients: { auth: { apiKeys: { file: file.path } } } } },
      {
        extend: (app) =>
          void app.addHook('onResponse', ({ headers }, _reply, done) => {
            seen.push(headers['tidegate-key']);
            done();
          }),
      },
    );
    expect((await send(url, '/pay/v1')).status).toBe(401);
    const [key = ''] = file.keys;
    expect((await send(url, '/pay/v1', { headers: ['Tidegate-Key', key] })).status).toBe(200);
    expect(api.received.map(({ headers }) => headers['tidegate-key'])).toEqual([undefined]);
    await eventually(
      () => seen.length,
      (count) => count === 2,
    );
    expect(seen).toEqual([undefined, key]);
  });
});

test('HTTP/2 requests of one connection are authenticated one by one', async () => {
  const certificates = makeCertificates();
  atEnd(() => certificates.remove());
  certificates.issue('server', '-addext', 'subjectAltName=IP:127.0.0.1');
  const { path, read } = certificates;
  const [file, issuer] = [makeKeyFile('shop'), await startIssuer()];
  const { api, gate } = await start({
    clients: `auth: {apiKeys: {file: ${file.path}}, ${jwtOf(issuer)}}`,
    more: `listen: {address: 127.0.0.1:0, tls: {cert: ${path('server.crt')}, key: ${path('server.key')}}, http2: true}`,
  });
  const session = await openHttp2(gate.url, read('ca.crt'));
  const token = `Bearer ${await issuer.issue('app')}`;
  const statuses = await Promise.all(
    [{ 'tidegate-key': file.keys[0] ?? '' }, { authorization: token }, { authorization: 'Bearer x' }, {}].map(
      async (headers) => (await sendHttp2(session, '/', { ':method': 'POST', ...headers }, '{}')).status,
    ),
  );
  expect(statuses).toEqual([200, 200, 401, 401]);
  expect(api.received.map(({ rawHeaders }) => rawHeaders.join(' ')).join(' ')).not.toMatch(/tg_|Bearer/);
});

test('workers accept the same keys and tokens, and count rejections together', async () => {
  const [file, issuer, api] = [makeKeyFile('shop'), await startIssuer(), await startRecordingUpstream()];
  const workers = await startWorkers(
    `workers: 2\nupstreams: {api: {url: "${api.url}"}}\nclients: {auth: {apiKeys: {file: ${file.path}}, ${jwtOf(issuer)}}}`,
  );
  const token = await issuer.issue('app');
  const all = Array.from({ length: 8 }, (_, i) => {
    if (i % 4 === 0) return send(workers.url, '/', { headers: ['Tidegate-Key', file.keys[0] ?? ''] });
    return send(workers.url, '/', i % 4 === 1 ? bearer(token) : {});
  });
  const statuses = (await Promise.all(all)).map(({ status }) => status);
  expect(statuses).toEqual([200, 200, 401, 401, 200, 200, 401, 401]);
  await eventually(
    () => workers.sum('tidegate_auth_rejected_total{reason="missing"}'),
    (count) => count === 4,
  );
});
