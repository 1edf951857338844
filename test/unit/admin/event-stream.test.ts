import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SseParser } from '../../../src/admin/page/sse-parser.js';

function read(...pieces: readonly string[]): unknown[] {
  const stream = new SseParser();
  return pieces.flatMap((piece) => stream.push(piece));
}

describe('events of a stream', () => {
  test('have a name and data, and are emitted once they are complete', () => {
    expect(read('id: 1\nevent: status\ndata: {"a":1}\n')).toEqual([]);
    expect(read('id: 1\nevent: status\ndata: {"a":1}\n', '\n')).toEqual([{ name: 'status', data: '{"a":1}' }]);
  });

  test('are of the type message if they have no name, and join all of their data lines', () => {
    expect(read('data: one\ndata:two\ndata\n\n')).toEqual([{ name: 'message', data: 'one\ntwo\n' }]);
  });

  test('lose only the first space after the colon of a field', () => {
    expect(read('data:  two: spaces\n\n')).toEqual([{ name: 'message', data: ' two: spaces' }]);
  });

  test('are not emitted for comments or fields without data, and do not keep the name of the previous event', () => {
    expect(read(': still here\n\nretry: 1000\n\nevent: status\n\ndata: x\n\n')).toEqual([
      { name: 'message', data: 'x' },
    ]);
  });

  test('are the same wherever the stream is split, and whatever line ending it uses', () => {
    const lines = ['event: status', 'data: {"a":"é"}', '', ': here', '', 'data: b', 'data: c', '', ''];
    const whole = read(lines.join('\n'));
    expect(whole).toHaveLength(2);
    fc.assert(
      fc.property(fc.constantFrom('\n', '\r', '\r\n'), fc.array(fc.nat(90)), (end, cuts) => {
        const text = `${lines.join(end)}\n`;
        const at = [0, ...cuts.filter((cut) => cut < text.length).toSorted((a, b) => a - b), text.length];
        expect(read(...at.slice(1).map((to, index) => text.slice(at[index], to)))).toEqual(whole);
      }),
    );
  });
});
