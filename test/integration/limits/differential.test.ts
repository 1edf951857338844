import { METHODS } from 'node:http';
import { describe, expect, test } from 'vitest';
import type { MessageCase } from '../../support/differential/cases.ts';
import { drawCases } from '../../support/differential/cases.ts';
import { differencesOfRequests, differencesOfResponses } from '../../support/differential/differences.ts';
import { CaseClient, startUpstream } from '../../support/differential/wire.ts';
import type { Field, HttpMessage, HttpResponse } from '../../support/clients/http-message.ts';
import { startTidegate } from '../../support/proxy/tidegate.ts';

const SEED = 20_261_121;
const COUNT = 600;
/** Concurrent cases. */
const LANES = 4;

/** Responses that change the rate or cause retries use a proxy in observe mode, which forwards all of them at once. */
const actedUpon = ({ answer }: MessageCase) =>
  [408, 409, 425, 429].includes(answer.status) ||
  answer.status >= 500 ||
  answer.fields.some(([name]) => /^(?:retry-after|x-ratelimit-)/i.test(name));

test(`forwards ${COUNT} random requests and responses as if there were no proxy`, async () => {
  const cases = drawCases(COUNT, SEED);
  const upstream = await startUpstream(cases);
  const config = `upstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}}}`;
  const enforcing = await startTidegate(config);
  const observing = await startTidegate(`mode: observe\n${config}`);

  const compare = async (
    each: MessageCase,
    number: number,
    direct: CaseClient,
    proxied: CaseClient,
  ): Promise<string[]> => {
    const straight = await direct.ask(each, number);
    const passed = await proxied.ask(each, number);
    const { fields, body } = passed.final;
    if (fields.some(([name]) => name === 'Proxy-Status')) return [`was answered by the proxy: ${body}`];
    const [first, second, ...more] = upstream.received(number);
    if (first === undefined || second === undefined || more.length > 0) {
      return [`reached the upstream ${upstream.received(number).length} times`];
    }
    return [...differencesOfRequests(first, second), ...differencesOfResponses(straight, passed, each.version)];
  };
  const found: string[] = [];
  const runLane = async (lane: number): Promise<void> => {
    const direct = new CaseClient(upstream.url);
    const [enforced, observed] = [new CaseClient(enforcing.url), new CaseClient(observing.url)];
    for (let number = lane; number < cases.length; number += LANES) {
      const each = cases[number]!;
      const through = actedUpon(each) ? observed : enforced;
      const differences = await compare(each, number, direct, through).catch((error: unknown) => [String(error)]);
      const name = `case ${number} of seed ${SEED}, ${each.method} ${each.target} → ${each.answer.status}`;
      for (const difference of differences) found.push(`${name}: ${difference}`);
    }
  };
  await Promise.all(Array.from({ length: LANES }, (_, lane) => runLane(lane)));
  expect(found).toEqual([]);
});

test('generates cases that cover every variant', () => {
  const cases = drawCases(COUNT, SEED);
  const methods = new Set(cases.map(({ method }) => method));
  expect(METHODS.filter((method) => !methods.has(method))).toEqual(['CONNECT']);
  expect(new Set(cases.map(({ answer }) => answer.status)).size).toBeGreaterThan(150);
  const count = (holds: (each: MessageCase) => boolean) => cases.filter(holds).length;
  const corners: Readonly<Record<string, (each: MessageCase) => boolean>> = {
    'HTTP/1.0': ({ version }) => version === '1.0',
    'HEAD that would have a body': ({ method, answer }) => method === 'HEAD' && answer.content.body !== '',
    'GET with a body': ({ method, content }) => method === 'GET' && content.body !== '',
    'a query': ({ target }) => target.includes('?'),
    'an empty query': ({ target }) => target.endsWith('?'),
    'two question marks': ({ target }) => target.split('?').length > 2,
    'an encoded slash': ({ target }) => target.includes('%2F') && target.includes('%2f'),
    'two slashes': ({ target }) => target.split('?')[0]!.includes('//'),
    'headers twice': ({ fields }) => new Set(fields.map(([name]) => name.toLowerCase())).size < fields.length,
    'an empty Content-Type': ({ fields }) => fields.some(([name, value]) => name === 'Content-Type' && value === ''),
    'an upload in chunks with trailers': ({ content }) => content.framing === 'chunked' && content.trailers.length > 0,
    'an upload too long to be kept': ({ content }) => content.body.length > 65_536,
    'an answer in chunks with trailers': ({ answer: { content } }) =>
      content.framing === 'chunked' && content.trailers.length > 0,
    'an answer that ends with its connection': ({ answer }) => answer.content.framing === 'close',
    'a 204': ({ answer }) => answer.status === 204,
    'a 304': ({ answer }) => answer.status === 304,
    'an unasked 100': ({ answer }) => answer.interim.some(({ startLine }) => startLine.includes(' 100 ')),
    hints: ({ answer }) => answer.interim.some(({ startLine }) => startLine.includes(' 103 ')),
    'a status beyond 599': ({ answer }) => answer.status > 599,
    'no reason': ({ answer }) => answer.reason === '',
    'a reason beyond ASCII': ({ answer }) => /[\x80-\xff]/.test(answer.reason),
    'a header beyond ASCII': ({ answer }) => answer.fields.some(([, value]) => /[\x80-\xff]/.test(value)),
    'several cookies': ({ answer }) => answer.fields.filter(([name]) => /^set-cookie$/i.test(name)).length > 1,
  };
  for (const [name, holds] of Object.entries(corners)) expect(count(holds), name).toBeGreaterThan(1);
});

describe('the comparison detects', () => {
  const fields: Field[] = [
    ['Host', 'shop.example'],
    ['X-A', '1'],
    ['X-B', '2'],
    ['x-a', '3'],
  ];
  const request: HttpMessage = {
    startLine: 'POST /a%2fb?c HTTP/1.1',
    fields: [...fields, ['Content-Length', '4']],
    framing: 'length',
    body: 'body',
    trailers: [],
  };
  const final: HttpMessage = {
    startLine: 'HTTP/1.1 200 Fine',
    fields: [...fields, ['Transfer-Encoding', 'chunked']],
    framing: 'chunked',
    body: 'body',
    trailers: [['X-Sum', '1']],
  };
  const hints = { ...final, startLine: 'HTTP/1.1 103 Early Hints', framing: 'none', body: '', trailers: [] } as const;
  const response: HttpResponse = { interim: [hints], final };

  const swapped: Field[] = [fields[0]!, fields[2]!, fields[1]!, ...request.fields.slice(3)];
  test.each<[string, Partial<HttpMessage>, RegExp]>([
    ['a changed target', { startLine: 'POST /a%2Fb?c HTTP/1.1' }, /^request line, at 9 of 22 and 22: .*%2Fb/],
    ['a lost header', { fields: request.fields.filter(([name]) => name !== 'X-B') }, /^request header lost: X-B: 2$/],
    ['an added header', { fields: [...request.fields, ['X-C', '']] }, /^request header added: X-C: $/],
    [
      'a forwarded hop-by-hop header',
      { fields: [...request.fields, ['Keep-Alive', 'x']] },
      /^request header added: Keep-Alive/,
    ],
    [
      'a changed case of a name',
      { fields: [['host', 'h'], ['x-a', '1'], ...swapped.slice(1)] },
      /^request header added: x-a: 1/,
    ],
    ['a changed order', { fields: swapped }, /^request header order/],
    ['a changed body', { body: 'bodi' }, /^request body, at 3 of 4 and 4: "body" became "bodi"$/],
    ['a changed framing', { framing: 'chunked' }, /^request framing/],
    ['trailers', { trailers: [['X-Sum', '1']] }, /^request trailers/],
  ])('%s of a request', (_, change, expected) => {
    expect(differencesOfRequests(request, request)).toEqual([]);
    expect(differencesOfRequests(request, { ...request, ...change }).join('\n')).toMatch(expected);
  });

  test.each<[string, Partial<HttpMessage>, RegExp]>([
    ['a changed status', { startLine: 'HTTP/1.1 201 Fine' }, /^status line/],
    ['a changed reason', { startLine: 'HTTP/1.1 200 OK' }, /^status line/],
    [
      'a changed header',
      { fields: [...fields.slice(1), ['X-B', '3']] },
      /^response header lost: Host[^]*added: X-B: 3/,
    ],
    ['a body cut short', { body: 'bod' }, /^response body, at 3 of 4 and 3/],
    ['a changed framing', { framing: 'close' }, /^response framing/],
    ['a lost trailer', { trailers: [] }, /^response trailer lost: X-Sum: 1$/],
  ])('%s of a response', (_, change, expected) => {
    expect(differencesOfResponses(response, response, '1.1')).toEqual([]);
    const changed = { ...response, final: { ...final, ...change } };
    expect(differencesOfResponses(response, changed, '1.1').join('\n')).toMatch(expected);
  });

  test('an interim response that is lost, changed, or sent to HTTP/1.0', () => {
    const lost = { ...response, interim: [] };
    const changed = { ...response, interim: [{ ...hints, fields: [] }] };
    for (const other of [lost, changed]) {
      expect(differencesOfResponses(response, other, '1.1').join('\n')).toMatch(/^interim responses/);
    }
    expect(differencesOfResponses(response, response, '1.0').join('\n')).toMatch(/^interim responses/);
  });
});
