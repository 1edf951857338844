import type { Profiler } from 'node:inspector/promises';
import { Session } from 'node:inspector/promises';
import { connect } from 'node:net';
import httpProxy from '@fastify/http-proxy';
import Fastify from 'fastify';
import { describe, expect, test } from 'vitest';
import { atEnd } from '../../support/at-end.ts';
import { startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';

const UPGRADE = 'Host: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n';
const KEY = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n';
const END = 'Host: a\r\nConnection: close\r\n';

/** Requests that reach the affected code of a proxy made of these packages, by advisory. */
const ATTACKS: Readonly<Record<string, string>> = {
  'CVE-2026-107318 (any request)': `GET / HTTP/1.1\r\n${END}\r\n`,
  'CVE-2026-133212 (GET with a body)': `GET / HTTP/1.1\r\n${END}Content-Length: 5\r\n\r\nhello`,
  'CVE-2026-133212 (TRACE with a body)': `TRACE / HTTP/1.1\r\n${END}Content-Length: 5\r\n\r\nhello`,
  'CVE-2026-133212 (falsy JSON)': `POST / HTTP/1.1\r\n${END}Content-Type: application/json\r\nContent-Length: 5\r\n\r\nfalse`,
  'CVE-2026-120213 (encoded delimiters)': `GET /a%2F..%2Fb%3Fc%23d HTTP/1.1\r\n${END}\r\n`,
  'CVE-2026-127060 (dot segments with parameters)': `GET /a/..;x=1/..;/b HTTP/1.1\r\n${END}\r\n`,
  'CVE-2026-129500 (upgrade that is reset)': `GET / HTTP/1.1\r\n${UPGRADE}${KEY}\r\n`,
  'CVE-2026-129502 (upgrade with a fragment)': `GET /#a HTTP/1.1\r\n${UPGRADE}${KEY}\r\n`,
  'CVE-2026-130647 (pipelined upgrade)': `GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\n${UPGRADE}${KEY}\r\n`,
  'CVE-2026-133111 (upgrade of another origin)': `GET / HTTP/1.1\r\n${UPGRADE}${KEY}Origin: http://evil.example\r\n\r\n`,
};

/** Sends the bytes and resolves to the responses, once there is one for each request. Resets the connection then. */
async function send(url: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  const requests = bytes.split(' HTTP/1.1\r\n').length - 1;
  let responses = '';
  socket.write(bytes);
  for await (const chunk of socket) {
    responses += String(chunk);
    if (responses.split('HTTP/1.1 ').length > requests) break;
  }
  socket.resetAndDestroy();
  return responses;
}

/** Returns the functions of both packages that V8 counts as called while `run` runs. */
async function calledFunctions(run: () => Promise<unknown>): Promise<string[]> {
  const session = new Session();
  session.connect();
  try {
    await session.post('Profiler.enable');
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    await run();
    const { result } = await session.post('Profiler.takePreciseCoverage');
    await session.post('Profiler.stopPreciseCoverage');
    return result
      .filter(({ url }) => /node_modules\/@fastify\/(?:http-proxy|reply-from)\//.test(url))
      .flatMap(calledIn);
  } finally {
    session.disconnect();
  }
}

function calledIn({ url, functions }: Profiler.ScriptCoverage): string[] {
  const called = functions.filter(({ ranges }) => (ranges[0]?.count ?? 0) > 0);
  return called.map(({ functionName }) => `${url.replace(/.*@fastify\//, '')} ${functionName}`);
}

describe('requests of the advisories on @fastify/http-proxy and @fastify/reply-from', () => {
  test('call no function of these packages', async () => {
    const upstream = await startUpstream();
    const proxy = await startTidegate(`upstreams: {api: {url: ${upstream.url}}}`);
    const responses: Record<string, string> = {};
    const called = await calledFunctions(async () => {
      for (const [name, bytes] of Object.entries(ATTACKS)) responses[name] = await send(proxy.url, bytes);
    });
    expect(Object.entries(responses).filter(([, response]) => !response.startsWith('HTTP/1.1 '))).toEqual([]);
    expect(called).toEqual([]);
  });

  test('call functions of these packages in a proxy that is made of them alone', async () => {
    const upstream = await startUpstream();
    const app = Fastify();
    atEnd(() => app.close());
    await app.register(httpProxy, { upstream: upstream.url });
    await app.ready();
    const called = await calledFunctions(() => app.inject('/'));
    expect(called).toEqual(
      expect.arrayContaining([
        'http-proxy/index.js handler',
        'http-proxy/index.js replyHandler',
        expect.stringMatching(/^reply-from\/index\.js /),
      ]),
    );
  });
});
