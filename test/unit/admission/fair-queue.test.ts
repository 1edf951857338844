import { describe, expect, test } from 'vitest';
import type { FairQueueFlow, FairQueueItem } from '../../../src/core/admission/fair-queue.ts';
import { FairQueue } from '../../../src/core/admission/fair-queue.ts';

class Request implements FairQueueItem<Request> {
  readonly name: string;
  flow: FairQueueFlow<Request> | undefined = undefined;
  previous: Request | undefined = undefined;
  next: Request | undefined = undefined;

  constructor(name: string) {
    this.name = name;
  }
}

const CLIENTS = { a: 0, b: 1, c: 2 } as const;

/** A queue with one request per letter, in this order; `weights` other than 1. */
function queueOf(order: string, weights: Partial<Record<keyof typeof CLIENTS, number>> = {}) {
  const queue = new FairQueue<Request>();
  const push = (name: string) => {
    const client = name as keyof typeof CLIENTS;
    const request = new Request(name);
    queue.push(CLIENTS[client], weights[client] ?? 1, request, 0);
    return request;
  };
  return { queue, push, requests: Array.from(order, push) };
}

function serve(queue: FairQueue<Request>, turns: number): string {
  return Array.from({ length: turns }, () => queue.shift()?.name ?? '-').join('');
}

/** Sorts the turns within each round, as equal tags may be served in any order. */
function rounds(turns: string, length: number): string[] {
  return Array.from({ length: Math.ceil(turns.length / length) }, (_, i) =>
    Array.from(turns.slice(i * length, (i + 1) * length))
      .toSorted()
      .join(''),
  );
}

describe('turns', () => {
  test('equal clients alternate, in whatever order they came and with however many requests', () => {
    expect(rounds(serve(queueOf('aaaabb').queue, 6), 2)).toEqual(['ab', 'ab', 'aa']);
    expect(serve(queueOf('').queue, 1)).toBe('-');
  });

  test('clients with one request each are served in order of arrival', () => {
    const queue = new FairQueue<Request>();
    const names = Array.from('qwertzuiop');
    for (const [key, name] of names.entries()) queue.push(key, 1, new Request(name), 0);
    const served = serve(queue, 3);
    for (const [key, name] of Array.from('asdf').entries()) queue.push(100 + key, 1, new Request(name), 1);
    expect(served + serve(queue, 11)).toBe('qwertzuiopasdf');
  });

  test('a weight of 4 has four turns in five', () => {
    const { queue } = queueOf('bbbbbaaaaaaaaaaaaaaaaaaaa', { a: 4 });
    expect(rounds(serve(queue, 25), 5)).toEqual(['aaaab', 'aaaab', 'aaaab', 'aaaab', 'aaaab']);
  });

  test('a late client has its turn within the next round, and no credit for its absence', () => {
    const { queue, push } = queueOf('aaaaaaaa');
    expect(serve(queue, 4)).toBe('aaaa');
    for (const name of 'bbbb') push(name);
    expect(rounds(serve(queue, 8), 2)).toEqual(['ab', 'ab', 'ab', 'ab']);
  });

  test('leaving and returning after every request gains nothing', () => {
    const { queue, push } = queueOf('abbbbbbbbbb');
    const turns = Array.from({ length: 20 }, () => {
      const { name = '-' } = queue.shift() ?? {};
      push(name);
      return name;
    });
    expect(turns.filter((name) => name === 'a')).toHaveLength(10);
  });

  test('removing a request costs its client no turn', () => {
    const { queue, requests } = queueOf('aaabbb');
    queue.remove(requests[0]!);
    queue.remove(requests[1]!);
    expect(rounds(serve(queue, 4), 2)).toEqual(['ab', 'bb']);
  });

  test('a change of weight applies to the client as a whole, from its next turn but one on', () => {
    const { queue, push } = queueOf('aaaaaabbbbbbbbbb');
    expect(rounds(serve(queue, 2), 2)).toEqual(['ab']);
    queue.push(CLIENTS.a, 1 / 4, new Request('a'), 0);
    expect(rounds(serve(queue, 2), 2)).toEqual(['ab']);
    expect(rounds(serve(queue, 10), 5)).toEqual(['abbbb', 'abbbb']);
    expect(push('c').flow?.weight).toBe(1);
  });
});

describe('shares', () => {
  test('are those of the waiting clients, by weight', () => {
    const { queue } = queueOf('aab', { a: 3 });
    expect(queue.share(CLIENTS.a, 3)).toBe(3 / 4);
    expect(queue.share(CLIENTS.b, 1)).toBe(1 / 4);
    expect(queue.share(CLIENTS.c, 4)).toBe(4 / 8);
  });

  test('are whole for a lone client, however small its weight', () => {
    const { queue } = queueOf('a', { a: 1 / 16 });
    expect(queue.share(CLIENTS.a, 1 / 16)).toBe(1);
    expect(queueOf('').queue.share(CLIENTS.b, 1 / 16)).toBe(1);
  });

  test('do not drift while fractional weights come and go', () => {
    const { queue } = queueOf('');
    for (let round = 0; round < 10_000; round += 1) {
      queue.push(0, 0.1, new Request('a'), 0);
      queue.push(1, 0.7, new Request('b'), 0);
      queue.shift();
      queue.shift();
    }
    expect(queue.share(2, 1e-6)).toBe(1);
  });
});

describe('waiting time', () => {
  test('is counted without a break from the first request that still waits', () => {
    const { queue } = queueOf('');
    queue.push(0, 1, new Request('a'), 100);
    queue.push(0, 1, new Request('a'), 400);
    queue.shift();
    expect(queue.activeFor(0, 500)).toBe(400);
    queue.shift();
    expect(queue.activeFor(0, 500)).toBe(0);
    queue.push(0, 1, new Request('a'), 600);
    expect(queue.activeFor(0, 650)).toBe(50);
  });
});
