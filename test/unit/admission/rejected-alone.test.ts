/** Addresses that the upstream always rejects, because of limits of their own, beside one that it always serves. */
import { expect, test } from 'vitest';
import { response } from '../../support/core/policy-builders.ts';
import { World } from '../../support/core/world.ts';

/** Rejected addresses join after 3 s. Returns the share of requests of the other address that were served from then on. */
function serveBeside(rejected: number, perSecond: number): number {
  const world = new World({ seed: 3 });
  const [from, to] = [3000, 28_000];
  let [asked, served] = [0, 0];
  const ask = (client: string, status: number): void => {
    const queued = world.arrive({ client, addressGroup: client });
    const counts = status === 200 && world.now >= from;
    if (counts) asked += 1;
    const send = (): void => {
      if (queued.admission === undefined) return void world.at(world.now + 5, send);
      if (queued.admission.kind === 'refused') return world.gate.onExchangeEnd(queued.ticket);
      if (counts) served += 1;
      world.send(queued);
      world.at(world.now + 10, () => {
        world.answer(queued, response(status));
        world.gate.onExchangeEnd(queued.ticket);
      });
    };
    send();
  };
  for (let at = 0; at < to; at += 50) world.at(at, () => ask('served', 200));
  for (let i = 0; i < rejected; i += 1) {
    for (let at = from + 137 * i; at < to; at += 1000 / perSecond) world.at(at, () => ask(`rejected-${i}`, 429));
  }
  world.runUntil(to + 15_000);
  return served / asked;
}

test.each([
  [1, 1],
  [1, 5],
  [2, 1],
  [2, 5],
  [3, 1],
  [4, 1],
  [6, 1],
  [3, 2],
])(
  '%i rejected addresses with %i requests a second each leave more than 0.8 to an accepted one',
  (rejected, perSecond) => {
    expect(serveBeside(rejected, perSecond)).toBeGreaterThan(0.8);
  },
);
