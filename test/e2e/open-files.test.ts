import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { writeConfigFile } from '../support/config-file.ts';
import { listen } from '../support/http-upstream.ts';
import { startProcess } from '../support/process.ts';
import { eventually } from '../support/tidegate.ts';

const FILES = 200;
const CLIENTS = 70;

function open(url: string): Socket {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.on('error', () => undefined);
  onTestFinished(() => {
    socket.destroy();
  });
  return socket;
}

// What may be open is lowered by a shell; that it is, the process can tell on Linux alone.
if (process.platform === 'linux') {
  test('where no more files may be open, that is said, and the upstream is not blamed', async () => {
    const upstream = await listen((_, response) => void setTimeout(() => response.end('answered'), 300));
    const config = writeConfigFile(`
listen: 127.0.0.1:0
admin: 127.0.0.1:0
upstreams: {api: {url: "${upstream.url}", connections: 100}}
`);
    const { log } = startProcess(['--config', config], { files: FILES });
    const [listening] = await eventually(
      () => log().filter(({ msg }) => msg === 'listening'),
      ({ length }) => length === 1,
      15_000,
    );
    const lowered = log().find(({ openFiles }) => openFiles === FILES);
    expect(lowered).toMatchObject({ level: 'info', connections: 75 });

    const clients = Array.from({ length: CLIENTS }, () => ({ socket: open(String(listening?.['url'])), said: '' }));
    for (const client of clients) client.socket.on('data', (data: Buffer) => (client.said += data.toString()));
    await eventually(() => clients.every(({ socket }) => !socket.connecting), Boolean);
    const others = Array.from({ length: 120 }, () => open(String(listening?.['admin'])));
    await eventually(() => others.some(({ closed }) => closed), Boolean);
    for (const { socket } of clients) socket.write('POST /pay HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi');
    await eventually(() => clients.every(({ said }) => said.includes('\r\n\r\n')), Boolean, 15_000);
    const short = clients.filter(({ said }) => said.startsWith('HTTP/1.1 503 '));
    expect(short.length).toBeGreaterThan(0);
    for (const { said } of short) expect(said).toMatch(/details="too_many_files"[^]*\r\nRetry-After: [23]\r\n/);
    expect(clients.filter(({ said }) => /^HTTP\/1\.1 (?:200|503) /.test(said))).toHaveLength(CLIENTS);

    for (const socket of others) socket.destroy();
    const again = clients[0];
    await eventually(
      () => {
        again?.socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
        return again?.said ?? '';
      },
      (said) => said.includes('answered'),
    );
    const told = log().map(({ msg }) => msg);
    expect(told).not.toContain('limit changed');
    expect(told.filter((msg) => String(msg).includes('endpoint'))).toEqual([]);
    const refused = await eventually(
      () => log().filter(({ reason }) => reason === 'too_many_files'),
      ({ length }) => length >= short.length,
    );
    expect(refused).toContainEqual(expect.objectContaining({ outcome: 'refused', cause: 'EMFILE', attempts: 1 }));
  });
}
