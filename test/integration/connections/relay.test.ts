/** Checks the relay with which other tests break connections. */
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import type { Relay } from '../../support/relay/relay.ts';
import { startRelay } from '../../support/relay/relay.ts';
import { pause } from '../../support/pause.ts';
import { eventually } from '../../support/proxy/tidegate.ts';

interface End {
  readonly socket: Socket;
  text: string;
  /** How the connection ended, if it has: with a FIN of the other side, or with an error. */
  over: string | undefined;
}

function watch(socket: Socket): End {
  const end: End = { socket, text: '', over: undefined };
  socket.on('data', (chunk: Buffer) => (end.text += chunk.toString()));
  socket.on('end', () => (end.over ??= 'FIN'));
  socket.on('error', (error: NodeJS.ErrnoException) => (end.over ??= error.code));
  onTestFinished(() => void socket.destroy());
  return end;
}

/** A relay before a target; `pair` opens a connection through it, and returns both ends. */
async function start(seed = 1): Promise<{ relay: Relay; pair: () => Promise<{ client: End; target: End }> }> {
  const targets: End[] = [];
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => targets.push(watch(socket)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const relay = await startRelay(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, { seed });
  onTestFinished(() => relay.close());
  const pair = async () => {
    const before = targets.length;
    const client = watch(reach(relay));
    await eventually(
      () => targets.length,
      (count) => count > before,
    );
    const target = targets[before];
    if (target === undefined) throw new Error('no target');
    return { client, target };
  };
  return { relay, pair };
}

function reach({ url }: Relay): Socket {
  return connect({ host: '127.0.0.1', port: Number(new URL(url).port), allowHalfOpen: true, noDelay: true });
}

const text = (end: End, length: number) =>
  eventually(
    () => end.text,
    (seen) => seen.length >= length,
  );

const over = (end: End) =>
  eventually(
    () => end.over,
    (seen) => seen !== undefined,
  );

test('relays data and FIN in both directions', async () => {
  const { relay, pair } = await start();
  const { client, target } = await pair();
  const large = 'x'.repeat(1_000_000);
  client.socket.end(large);
  expect(await text(target, large.length)).toBe(large);
  expect(await over(target)).toBe('FIN');
  target.socket.end('answer');
  expect(await text(client, 6)).toBe('answer');
  expect(await over(client)).toBe('FIN');
  await eventually(
    () => relay.links.length,
    (count) => count === 0,
  );
});

test('relays a reset as a reset', async () => {
  const { pair } = await start();
  const { client, target } = await pair();
  target.socket.resetAndDestroy();
  expect(await over(client)).toBe('ECONNRESET');
});

test('delays every byte by the configured time, applies a shorter delay at once, and never reorders', async () => {
  const { relay, pair } = await start();
  const { client, target } = await pair();
  relay.injectFaults({ up: { delay: 100 } });
  const since = performance.now();
  client.socket.write('late');
  expect(await text(target, 4)).toBe('late');
  expect(performance.now() - since).toBeGreaterThanOrEqual(99);
  relay.injectFaults({ up: { delay: 3_600_000 } });
  client.socket.write(' first');
  await pause(20);
  relay.injectFaults({ up: { delay: 10 } });
  client.socket.write(' second');
  expect(await text(target, 17)).toBe('late first second');
});

test('trickles bytes at the configured rate', async () => {
  const { relay, pair } = await start();
  const { client, target } = await pair();
  relay.injectFaults({ up: { trickle: { bytes: 2, every: 20 } } });
  const since = performance.now();
  client.socket.write('0123456789');
  expect(await text(target, 10)).toBe('0123456789');
  expect(performance.now() - since).toBeGreaterThanOrEqual(79);
});

test.each([
  ['cut', 'FIN', 'FIN'],
  ['reset', 'ECONNRESET', 'ECONNRESET'],
  ['truncate', undefined, 'FIN'],
  ['stall', undefined, undefined],
] as const)('%s after a number of bytes: the sender sees %s, the receiver %s', async (how, sender, receiver) => {
  const { relay, pair } = await start();
  relay.injectFaults({ up: { end: { after: 5, how } } });
  const { client, target } = await pair();
  client.socket.write('0123456789');
  expect(await text(target, 5)).toBe('01234');
  if (receiver !== undefined) expect(await over(target)).toBe(receiver);
  if (sender !== undefined) expect(await over(client)).toBe(sender);
  if (sender === undefined) {
    target.socket.write('still here');
    expect(await text(client, 10)).toBe('still here');
    expect([client.over, target.over]).toEqual([undefined, receiver]);
  }
  expect(target.text).toBe('01234');
});

test('breaks connections at random, and the same way for the same seed', async () => {
  const lengths = async () => {
    const { relay, pair } = await start(7);
    relay.injectFaults({ up: { end: { after: [0, 100], how: 'cut' } } });
    const seen: number[] = [];
    for (let i = 0; i < 5; i += 1) {
      const { client, target } = await pair();
      client.socket.write('x'.repeat(100));
      await over(target);
      seen.push(target.text.length);
    }
    return seen;
  };
  const first = await lengths();
  expect(new Set(first).size).toBeGreaterThan(1);
  expect(await lengths()).toEqual(first);
});

test('applies faults per connection, and changes them while it is open', async () => {
  const { relay, pair } = await start();
  relay.injectFaults((nth) => (nth === 2 ? { down: { end: { after: 0, how: 'reset' } } } : {}));
  const [first, second] = [await pair(), await pair()];
  for (const { target } of [first, second]) target.socket.write('answer');
  expect(await text(first.client, 6)).toBe('answer');
  expect(await over(second.client)).toBe('ECONNRESET');
  relay.links[0]?.spoil({ down: { end: { after: 2, how: 'truncate' } } });
  first.target.socket.write('again');
  expect(await over(first.client)).toBe('FIN');
  expect(first.client.text).toBe('answerag');
});

test('pauses one direction and resumes it', async () => {
  const { relay, pair } = await start();
  const { client, target } = await pair();
  relay.links[0]?.pause('down');
  target.socket.write('late');
  client.socket.write('in time');
  expect(await text(target, 7)).toBe('in time');
  await pause(50);
  expect(client.text).toBe('');
  relay.links[0]?.resume('down');
  expect(await text(client, 4)).toBe('late');
});

test('refuses, blackholes and accepts connections on one port', async () => {
  const { relay, pair } = await start();
  const { client, target } = await pair();
  const { url } = relay;
  await relay.refuse();
  expect(await over(watch(reach(relay)))).toBe('ECONNREFUSED');

  await relay.blackhole();
  const swallowed = reach(relay);
  onTestFinished(() => void swallowed.destroy());
  const socketEvents: string[] = [];
  for (const what of ['connect', 'error', 'close']) swallowed.on(what, () => socketEvents.push(what));
  await pause(300);
  expect([socketEvents, swallowed.connecting]).toEqual([[], true]);

  await relay.accept();
  expect(relay.url).toBe(url);
  const another = await pair();
  another.client.socket.write('hello');
  expect(await text(another.target, 5)).toBe('hello');
  // Meanwhile existing connections were served.
  client.socket.write('me too');
  expect(await text(target, 6)).toBe('me too');
});

test('partitions the network and heals it: data sent meanwhile arrives late and in order', async () => {
  const { relay, pair } = await start();
  const { client, target } = await pair();
  await relay.partition();
  const newcomer = reach(relay);
  onTestFinished(() => void newcomer.destroy());
  client.socket.write('up');
  target.socket.write('down');
  client.socket.write(' and on');
  await pause(50);
  expect([client.text, target.text, client.over, target.over, newcomer.connecting]).toEqual([
    '',
    '',
    undefined,
    undefined,
    true,
  ]);
  await relay.rejoin();
  expect(await text(target, 9)).toBe('up and on');
  expect(await text(client, 4)).toBe('down');
  const another = await pair();
  another.client.socket.write('hello');
  expect(await text(another.target, 5)).toBe('hello');
});
