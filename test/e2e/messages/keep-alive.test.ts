import type { RequestOptions } from 'node:http';
import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import type { Socket } from 'node:net';
import { Agent, fetch } from 'undici';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startRecordingUpstream } from '../../support/upstreams/recording-upstream.ts';
import { startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';

interface Answered {
  readonly status: number;
  readonly text: string;
  readonly socket: Socket;
}

function send(url: string, options: RequestOptions, body: string): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(url, options);
    request.on('error', reject);
    request.on('response', (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('error', reject);
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text, socket: request.socket as Socket }));
    });
    request.end(body);
  });
}

describe('node:http with a keep-alive agent', () => {
  test('sends 200 requests over one client connection and one upstream connection', async () => {
    const origin = await startRecordingUpstream(({ body }, response) => response.end(body));
    const tidegate = await startTidegate(`upstreams: {api: {url: '${origin.url}'}}`);
    const agent = new HttpAgent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    const sockets = new Set<Socket>();
    for (let i = 0; i < 200; i += 1) {
      const method = i % 2 === 0 ? 'POST' : 'PUT';
      const { status, text, socket } = await send(`${tidegate.url}/${i}`, { agent, method }, `body ${i}`);
      expect([status, text]).toEqual([200, `body ${i}`]);
      sockets.add(socket);
    }
    expect(sockets.size).toBe(1);
    expect(origin.connections()).toBe(1);
    expect(origin.received.map(({ target }) => target)).toEqual(Array.from({ length: 200 }, (_, i) => `/${i}`));
  });

  test('keeps its connection through upstream errors, retries and resets', async () => {
    const upstream = await startUpstream();
    const tidegate = await startTidegate(`
upstreams:
  api:
    url: ${upstream.url}
    retry: {attempts: 2, budget: {burst: 100}, backOff: {strategy: fixed, baseInterval: 1ms}}
`);
    const agent = new HttpAgent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    const steps = ['500', '404', '500, 200', 'reset, 200', '204', '304', '500; body=100000', '200; body=100000'];
    const statuses: number[] = [];
    const sockets = new Set<Socket>();
    for (const [i, step] of steps.entries()) {
      const headers = { 'X-Practice-Script': step, 'X-Practice-Id': `step-${i}` };
      const { status, socket } = await send(`${tidegate.url}/echo`, { agent, method: 'POST', headers }, 'x');
      statuses.push(status);
      sockets.add(socket);
    }
    expect(statuses).toEqual([500, 404, 500, 504, 204, 304, 500, 200]);
    expect(sockets.size).toBe(1);
  });
});

describe('fetch of undici', () => {
  test('sends 300 parallel requests over ten connections, and each gets its own response', async () => {
    const origin = await startRecordingUpstream(({ target, body }, response) =>
      response.end(`${target} ${String(body)}`),
    );
    const tidegate = await startTidegate(
      `upstreams: {api: {url: '${origin.url}', connections: 4, queue: {maxWait: 30s}}}`,
    );
    const dispatcher = new Agent({ connections: 10, allowH2: false });
    onTestFinished(() => dispatcher.close());
    const answers = await Promise.all(
      Array.from({ length: 300 }, async (_, i) => {
        const answer = await fetch(`${tidegate.url}/${i}`, { method: 'POST', body: `body ${i}`, dispatcher });
        return answer.text();
      }),
    );
    expect(answers).toEqual(Array.from({ length: 300 }, (_, i) => `/${i} body ${i}`));
    expect(origin.received).toHaveLength(300);
    expect(origin.connections()).toBeLessThanOrEqual(4);
  });

  test('streams an upload of unknown length, and receives a response as it arrives', async () => {
    const origin = await startRecordingUpstream(({ body }, response) => {
      response.write(body.subarray(0, 5));
      setTimeout(() => response.end(body.subarray(5)), 50);
    });
    const tidegate = await startTidegate(`upstreams: {api: {url: '${origin.url}'}}`);
    const dispatcher = new Agent({ allowH2: false });
    onTestFinished(() => dispatcher.close());
    const answer = await fetch(tidegate.url, { method: 'POST', body: letters(), duplex: 'half', dispatcher });
    const reader = answer.body?.getReader();
    const first = await reader?.read();
    expect(Buffer.from((first?.value as Uint8Array | undefined) ?? []).toString()).toBe('hello');
    const second = await reader?.read();
    expect(Buffer.from((second?.value as Uint8Array | undefined) ?? []).toString()).toBe(' world');
    expect((await reader?.read())?.done).toBe(true);
    expect(origin.received[0]?.headers['content-length']).toBe('11'); // short enough for the replay buffer, so its length is known
  });

  test('follows a redirect itself, because the proxy forwards it', async () => {
    const origin = await startRecordingUpstream(({ target }, response) => {
      if (target === '/old') response.writeHead(307, { Location: '/new' }).end();
      else response.end('here');
    });
    const tidegate = await startTidegate(`upstreams: {api: {url: '${origin.url}'}}`);
    const dispatcher = new Agent({ allowH2: false });
    onTestFinished(() => dispatcher.close());
    const answer = await fetch(`${tidegate.url}/old`, { method: 'POST', body: 'x', dispatcher });
    expect([answer.status, answer.url, await answer.text()]).toEqual([200, `${tidegate.url}/new`, 'here']);
    expect(origin.received.map(({ method, target }) => `${method} ${target}`)).toEqual(['POST /old', 'POST /new']);
  });
});

async function* letters(): AsyncGenerator<Buffer, void, undefined> {
  for (const letter of 'hello world') {
    await Promise.resolve();
    yield Buffer.from(letter);
  }
}
