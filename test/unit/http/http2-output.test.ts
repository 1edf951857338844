import { describe, expect, test } from 'vitest';
import { Http2Output } from '../../../src/http/upstream/http2/http2-output.ts';

const WINDOW = 65_535;

function makeOutput() {
  const session = { destroyed: false, state: { remoteWindowSize: WINDOW, outboundQueueSize: 0 } };
  const socket = { bytesWritten: 100 };
  const clock = { time: 0, now: () => clock.time };
  const output = new Http2Output(session as never, socket as never, clock);
  const begin = (length: number, unwrittenBytes = 0) => {
    const upload = { unwrittenBytes, pending: { request: { body: Buffer.alloc(length) } } };
    output.add(upload);
    return upload;
  };
  return { output, state: session.state, socket, clock, begin };
}

const body = (length: number): Buffer => Buffer.alloc(length);

describe('the room for a body on a connection', () => {
  test('is the window less the bytes that wait in this process', () => {
    const { output, state, begin } = makeOutput();
    const upload = begin(40_000, 40_000);
    expect(output.hasRoomFor(body(25_535))).toBe(true);
    expect(output.hasRoomFor(body(25_536))).toBe(false);
    upload.unwrittenBytes = 0;
    state.remoteWindowSize = 5000;
    expect(output.hasRoomFor(body(5000))).toBe(true);
    expect(output.hasRoomFor(body(5001))).toBe(false);
    expect(output.hasRoomFor(null)).toBe(true);
    expect(output.hasRoomFor(body(0))).toBe(true);
    output.remove(upload);
    state.remoteWindowSize = WINDOW;
    expect(output.hasRoomFor(body(WINDOW))).toBe(true);
  });

  test('is sufficient for one body, and for small ones, if the upstream renews its window late', () => {
    const { output, state, begin } = makeOutput();
    state.remoteWindowSize = 33_000;
    expect(output.hasRoomFor(body(60_000))).toBe(true);
    begin(10_000);
    state.remoteWindowSize = 20_000;
    expect(output.hasRoomFor(body(22_000))).toBe(true);
    expect(output.hasRoomFor(body(23_000))).toBe(false);
  });

  test('is reduced by what the upstream accepts of each body before it reads', () => {
    const { output, begin } = makeOutput();
    output.streamWindow = 1000;
    for (let i = 0; i < 64; i += 1) begin(1_000_000, 999_000);
    expect(output.hasRoomFor(body(1_000_000))).toBe(true);
    begin(1_000_000, 999_000);
    expect(output.hasRoomFor(body(1_000_000))).toBe(false);
  });

  test('is missing if the window is not renewed although no body is in progress', () => {
    const { output, state } = makeOutput();
    state.remoteWindowSize = 10_000;
    expect([output.hasRoomFor(body(10_001)), output.isDrained]).toEqual([false, true]);
    state.remoteWindowSize = WINDOW;
    expect([output.hasRoomFor(body(10_001)), output.isDrained]).toEqual([true, false]);
  });
});

describe('a connection counts as stuck', () => {
  test('while frames wait and nothing is written', () => {
    const { output, state, socket, clock } = makeOutput();
    state.outboundQueueSize = 1;
    output.sample();
    expect(output.isStuck).toBe(false);
    clock.time = 101;
    expect(output.isStuck).toBe(true);
    socket.bytesWritten += 1;
    expect(output.isStuck).toBe(false);
  });

  test('but not because frames waited in two turns of the event loop', () => {
    const { output, state, socket, clock } = makeOutput();
    for (let turn = 0; turn < 5; turn += 1) {
      state.outboundQueueSize = 3;
      output.sample();
      expect(output.isStuck).toBe(false);
      socket.bytesWritten += 500;
      clock.time += 10_000;
    }
    output.sample();
    state.outboundQueueSize = 0;
    output.sample();
    clock.time += 10_000;
    expect(output.isStuck).toBe(false);
  });
});
