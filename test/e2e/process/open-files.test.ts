import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { writeConfigFile } from '../../support/proxy/config-file.ts';
import { listen } from '../../support/upstreams/http-upstream.ts';
import { startProcess } from '../../support/proxy/process.ts';
import { eventually } from '../../support/proxy/tidegate.ts';

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

// A shell lowers the limit of open files; the process can read that limit only on Linux.
if (process.platform === 'linux') {
  test('at the limit of open files, it answers 503 too_many_files and does not count it against the upstream', async () => {
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
    );
    const lowered = log().find(({ openFiles }) => openFiles === FILES);
    expect(lowered).toMatchObject({ level: 'warn', connections: 75 });

    const clients = Array.from({ length: CLIENTS }, () => ({ socket: open(String(listening?.['url'])), received: '' }));
    for (const client of clients) client.socket.on('data', (data: Buffer) => (client.received += data.toString()));
    await eventually(() => clients.every(({ socket }) => !socket.connecting), Boolean);
    const others = Array.from({ length: 120 }, () => open(String(listening?.['admin'])));
    await eventually(() => others.some(({ closed }) => closed), Boolean);
    for (const { socket } of clients) socket.write('POST /pay HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi');
    await eventually(() => clients.every(({ received }) => received.includes('\r\n\r\n')), Boolean);
    const short = clients.filter(({ received }) => received.startsWith('HTTP/1.1 503 '));
    expect(short.length).toBeGreaterThan(0);
    for (const { received } of short) expect(received).toMatch(/details="too_many_files"[^]*\r\nRetry-After: [23]\r\n/);
    expect(clients.filter(({ received }) => /^HTTP\/1\.1 (?:200|503) /.test(received))).toHaveLength(CLIENTS);

    for (const socket of others) socket.destroy();
    const again = clients[0];
    await eventually(
      () => {
        again?.socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
        return again?.received ?? '';
      },
      (received) => received.includes('answered'),
    );
    const messages = log().map(({ msg }) => msg);
    expect(messages).not.toContain('limit changed state');
    expect(messages.filter((msg) => String(msg).includes('endpoint'))).toEqual([]);
    const refused = await eventually(
      () => log().filter(({ reason }) => reason === 'too_many_files'),
      ({ length }) => length >= short.length,
    );
    expect(refused).toContainEqual(expect.objectContaining({ outcome: 'refused', cause: 'EMFILE', attempts: 1 }));
  });
}
