import type { Redis } from 'ioredis';
import { expect } from 'vitest';

/** As in delivery-turn-parts.ts. */
const PLACE = 2 ** 40;

/** All that the keys of turns and of room should have, by what the deliveries themselves say. @param prefix of all keys */
export async function checkRedisKeys(client: Redis, prefix: string): Promise<void> {
  const keys = (await client.keys(`${prefix}*`)).map((key) => key.slice(prefix.length));
  const scores = async (key: string): Promise<[string, number][]> => {
    const found = await client.zrange(prefix + key, '0', '-1', 'WITHSCORES');
    return found.flatMap((member, i) => (i % 2 === 0 ? [[member, Number(found[i + 1])] as [string, number]] : []));
  };
  const claimed = new Set(await client.zrange(`${prefix}claimed`, '0', '-1'));
  const [used, stored, evictable, waiting] = [new Count(), new Count(), new Count(), new Map<string, number>()];
  for (const key of keys.filter((each) => each.startsWith('of:'))) {
    const its = await client.hgetall(prefix + key);
    const { route = '', state = '', owner = '', sender = owner, claim = '', until = '', size = '' } = its;
    const id = key.slice('of:'.length);
    if (state === 'delivered' || state === 'canceled') evictable.add(sender);
    else {
      stored.add(`count:${sender}`);
      stored.add(`bytes:${sender}`, Number(size));
    }
    expect([claimed.has(id), claim !== '']).toEqual(state === 'open' && claim !== '' ? [true, true] : [false, false]);
    if (claim !== '') {
      const process = claim.split(' ')[1] ?? '';
      for (const name of [sender, `${sender} ${owner}`]) {
        used.add(`${route}: ${name}`);
        used.add(`${route}: ${process} ${name}`);
      }
    } else if (state === 'open' && !('blocked' in its)) waiting.set(`${sender}:${owner}:${route} ${id}`, Number(until));
  }
  const facts = async (starts: string): Promise<Record<string, number>> => {
    const all = keys.filter((each) => each.startsWith(`${starts}:`));
    const entries = await Promise.all(all.map(async (key) => Object.entries(await client.hgetall(prefix + key))));
    const names = all.map((key) => `${key.slice(starts.length + 1)}: `);
    return Object.fromEntries(
      entries.flatMap((each, i) => each.map(([field, value]) => [(names[i] ?? '') + field, Number(value)])),
    );
  };
  const hash = await client.hgetall(`${prefix}stored`);
  expect(Object.fromEntries(Object.entries(hash).map(([field, value]) => [field, Number(value)]))).toEqual(stored.all);
  expect(Object.fromEntries(await scores('evictable'))).toEqual(evictable.all);
  expect(await facts('used')).toEqual(used.all);

  /** The first times when a delivery of each client, and of each sender, is due. */
  const [firsts, turns] = [new Map<string, number>(), new Map<string, string>()];
  const found = new Map<string, number>();
  for (const key of keys.filter((each) => each.startsWith('due:'))) {
    const place = key.slice('due:'.length);
    for (const [id, at] of await scores(key)) {
      found.set(`${place} ${id}`, at);
      firsts.set(place, Math.min(at, firsts.get(place) ?? Infinity));
    }
  }
  expect(found).toEqual(waiting);
  const senderFirsts = new Map<string, number>();
  for (const [place, first] of firsts) {
    const [sender = '', owner = '', route = ''] = place.split(':');
    const [turn, later] = await Promise.all([
      client.zscore(`${prefix}clients:${sender}:${route}`, owner),
      client.zscore(`${prefix}later:${sender}:${route}`, owner),
    ]);
    expect([place, turn === null, later]).toEqual([place, later !== null, later === null ? null : String(first)]);
    if (later === null) turns.set(`${sender}:${route}`, owner);
    else senderFirsts.set(`${sender}:${route}`, Math.min(first, senderFirsts.get(`${sender}:${route}`) ?? Infinity));
    if (turn !== null) {
      expect(Math.floor(Number(turn) / PLACE)).toBe(used.all[`${route}: ${sender} ${owner}`] ?? 0);
    }
  }
  const senderKeys = async (starts: string): Promise<Map<string, number>> => {
    const all = new Map<string, number>();
    for (const key of keys.filter((each) => each.startsWith(`${starts}:`) && each.split(':').length === 2)) {
      for (const [sender, score] of await scores(key)) all.set(`${sender}:${key.slice(starts.length + 1)}`, score);
    }
    return all;
  };
  expect(await senderKeys('later')).toEqual(senderFirsts);
  const inTurn = await senderKeys('senders');
  expect([...inTurn.keys()].toSorted()).toEqual([...turns.keys()].toSorted());
  for (const [place, rank] of inTurn) {
    const [sender = '', route = ''] = place.split(':');
    expect(Math.floor(rank / PLACE)).toBe(used.all[`${route}: ${sender}`] ?? 0);
  }
}

class Count {
  readonly all: Record<string, number> = {};

  add(name: string, amount = 1): void {
    this.all[name] = (this.all[name] ?? 0) + amount;
  }
}
