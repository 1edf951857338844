import { describe, expect, test } from 'vitest';
import type { FairQueueFlow, FairQueueItem } from '../../../src/core/collections/fair-queue-flow.ts';
import { FairQueue } from '../../../src/core/collections/fair-queue.ts';

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

describe('clients that leave before their turn', () => {
  /** Six clients of weight 10 that always wait, and one of weight 1 that leaves after ten turns of others, and then returns. */
  function servedOf(turns: number, group?: string): number {
    const queue = new FairQueue<Request>();
    for (let i = 0; i <= 6 * turns; i += 1) queue.push(1 + (i % 6), 10, new Request('heavy'), 0);
    let [served, waitedFor] = [0, 0];
    let light = new Request('light');
    queue.push(0, 1, light, 0, group);
    for (let turn = 0; turn < turns; turn += 1) {
      if (queue.shift() === light) served += 1;
      else if ((waitedFor += 1) < 10) continue;
      else queue.remove(light);
      light = new Request('light');
      waitedFor = 0;
      queue.push(0, 1, light, 0, group);
    }
    return served;
  }

  test.each([undefined, 'address'])('have their share of turns when they return (group %s)', (group) => {
    expect(servedOf(610, group)).toBe(10);
  });

  test('keep no place if they have the weight of the others', () => {
    const { queue, push, requests } = queueOf('aaaaac');
    queue.remove(requests.at(-1) as Request);
    expect(serve(queue, 3)).toBe('aaa');
    push('b');
    push('c');
    expect(serve(queue, 4).replaceAll('a', '')).toBe('bc');
  });

  test('have one turn at most for all the time that they were away', () => {
    const { queue, push, requests } = queueOf(`${'a'.repeat(40)}b`, { a: 4 });
    queue.remove(requests.at(-1) as Request);
    expect(serve(queue, 20)).toBe('a'.repeat(20));
    for (let i = 0; i < 4; i += 1) push('b');
    // One turn is due at once; the next one comes after four of the other client.
    expect(serve(queue, 12)).toMatch(/^a?ba{3,5}ba{3,5}ba*$/);
  });
});

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

  test('a client of weight 4 has four turns in five', () => {
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

describe('clients of a group', () => {
  /** One request per letter: capitals are clients of one group. */
  function grouped(order: string, weights: Readonly<Record<string, number>> = {}) {
    const queue = new FairQueue<Request>();
    const requests = Array.from(order, (name) => {
      const request = new Request(name);
      const group = name === name.toUpperCase() ? 'group' : undefined;
      queue.push(name.charCodeAt(0), weights[name] ?? 1, request, 0, group);
      return request;
    });
    return { queue, requests };
  }

  test('have the turns of one client, and share them', () => {
    const { queue } = grouped('AAAABBBBaaaaaaaa');
    const turns = serve(queue, 16);
    expect(rounds(turns.replaceAll(/[AB]/g, 'x'), 2)).toEqual(Array.from({ length: 8 }, () => 'ax'));
    expect(rounds(turns.replaceAll('a', ''), 2)).toEqual(['AB', 'AB', 'AB', 'AB']);
  });

  test('are served in order of arrival if each has one request', () => {
    expect(serve(grouped('ABCDE').queue, 5)).toBe('ABCDE');
  });

  test('have one turn in each round together, whichever of them waits', () => {
    const { queue, requests } = grouped('ababababABCD');
    for (const request of requests.slice(8, 11)) queue.remove(request);
    expect(serve(queue, 3)).toContain('D');
  });

  test('do not wait for a client of the group with a small weight', () => {
    const { queue } = grouped('AabababB', { A: 1 / 16 });
    expect(serve(queue, 3)).toContain('B');
  });

  test('yield to one another while the first is deferred', () => {
    const { queue, requests } = grouped('AABa');
    expect(queue.peek(({ name }) => name !== 'B')).toBe(requests[2]);
    expect(queue.peek(({ name }) => name === 'A')?.name).toBe('B');
    expect(queue.peek(() => true)?.name).toBe('A');
    queue.take(requests[2]!);
    expect(rounds(serve(queue, 3), 3)).toEqual(['AAa']);
  });

  test('have the share of one client together', () => {
    const { queue } = grouped('ABab');
    expect([queue.activeWeight, queue.size]).toEqual([3, 4]);
    expect(queue.share(CODE.A, 1, 'group')).toBe(1 / 3);
    expect(queue.partOfGroup(CODE.A, 1, 'group')).toBe(1 / 2);
    expect(queue.share(CODE.C, 1, 'group')).toBe(1 / 3);
    expect(queue.partOfGroup(CODE.C, 1, 'group')).toBe(1 / 3);
    expect(queue.partOfGroup(CODE.a, 1)).toBe(1);
    serve(queue, 4);
    expect([queue.activeWeight, queue.size, queue.share(CODE.A, 1, 'group')]).toEqual([0, 0, 1]);
  });

  test('have turns by their weight, and divide them by their weight in the group', () => {
    const queue = new FairQueue<Request>();
    for (let i = 0; i < 8; i += 1) {
      queue.push(CODE.A, 2, new Request('A'), 0, 'group', 0.5);
      queue.push(CODE.B, 2, new Request('B'), 0, 'group', 1.5);
      queue.push(CODE.a, 1, new Request('a'), 0);
    }
    expect([queue.activeWeight, queue.share(CODE.A, 2, 'group'), queue.share(CODE.a, 1)]).toEqual([3, 2 / 3, 1 / 3]);
    expect([queue.partOfGroup(CODE.A, 0.5, 'group'), queue.partOfGroup(CODE.B, 1.5, 'group')]).toEqual([1 / 4, 3 / 4]);
    const turns = serve(queue, 12);
    expect(rounds(turns.replaceAll(/[AB]/g, 'x'), 3)).toEqual(Array.from({ length: 4 }, () => 'axx'));
    expect(rounds(turns.replaceAll('a', ''), 4)).toEqual(['ABBB', 'ABBB']);
  });

  test('keep the weight of their turns when only a weight in the group changes', () => {
    const { queue, requests } = grouped('ABa');
    queue.updateWeight(requests[0]!, 1, 1 / 4);
    expect([queue.activeWeight, queue.share(CODE.A, 1, 'group')]).toEqual([2, 1 / 2]);
    expect(queue.partOfGroup(CODE.B, 1, 'group')).toBe(4 / 5);
    queue.remove(requests[1]!);
    expect(queue.partOfGroup(CODE.A, 1 / 4, 'group')).toBe(1);
  });
});

describe('deferred clients', () => {
  /** `count` clients with one request each, numbered from `from` on. */
  function push(queue: FairQueue<Request>, name: string, from: number, count: number, group?: string): Request[] {
    return Array.from({ length: count }, (_, i) => {
      const request = new Request(name);
      queue.push(from + i, 1, request, 0, group);
      return request;
    });
  }
  const isBlocked = ({ name }: Request): boolean => name === 'blocked';

  test.each([
    ['of one address', 'address'],
    ['of as many addresses', undefined],
  ])('%s do not hide a client that is not deferred, however many they are', (_, group) => {
    const queue = new FairQueue<Request>();
    push(queue, 'blocked', 0, 5000, group);
    push(queue, 'other', 10_000, 3);
    const served: (string | undefined)[] = [];
    for (let look = 0; look < 8; look += 1) {
      const next = queue.peek(isBlocked);
      served.push(next?.name);
      if (next?.name === 'other') queue.take(next);
    }
    expect(served.filter((name) => name === 'other')).toHaveLength(3);
    expect(queue.size).toBe(5000);
  });

  test('are examined in turn, at most 2000 at a time, so that each is examined', () => {
    const queue = new FairQueue<Request>();
    const requests = push(queue, 'blocked', 0, 5000, 'address');
    for (let look = 0; look < 5; look += 1) queue.peek(isBlocked);
    expect(queue.wasSearchComplete).toBe(false);
    for (const released of [requests[0], requests[2500], requests[4999]]) {
      let examined = 0;
      const found = Array.from({ length: 5 }, () =>
        queue.peek((request) => {
          examined += 1;
          return request !== released;
        }),
      );
      expect(found).toContain(released);
      expect(examined).toBeLessThanOrEqual(5 * 2000);
    }
  });

  test('have their turns again once nothing defers them', () => {
    const queue = new FairQueue<Request>();
    const requests = push(queue, 'blocked', 0, 3, 'address');
    push(queue, 'other', 10, 1);
    expect(queue.peek(isBlocked)?.name).toBe('other');
    expect([queue.size, queue.activeWeight, [...queue.flows].length]).toEqual([4, 2, 4]);
    queue.remove(requests[1]!);
    expect(serve(queue, 4)).toBe('blockedotherblocked-');
    expect([queue.size, queue.activeWeight, [...queue.flows].length]).toEqual([0, 0, 0]);
  });
});

const CODE = { A: 65, B: 66, C: 67, a: 97 } as const;

describe('shares', () => {
  test('are those of the waiting clients, by weight', () => {
    const { queue } = queueOf('aab', { a: 3 });
    expect(queue.share(CLIENTS.a, 3)).toBe(3 / 4);
    expect(queue.share(CLIENTS.b, 1)).toBe(1 / 4);
    expect(queue.share(CLIENTS.c, 4)).toBe(4 / 8);
  });

  test('of a lone client are whole, however small its weight', () => {
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
  test('is counted without interruption from the first request that still waits', () => {
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
