/** The places of a route are shared among the clients that have stored deliveries, with SQLite. */
import { expect, test } from 'vitest';
import { DueClients } from '../../../src/store/deliveries/due-clients.ts';
import { addAll, newDelivery } from '../../support/deliveries/delivery-place.ts';
import { describeFairDispatch } from '../../support/deliveries/describe-fair-dispatch.ts';
import { sqlitePlace } from '../../support/deliveries/sqlite-place.ts';

describeFairDispatch('SQLite', sqlitePlace);

test('clients of one sender take turns, and senders of one route, although thousands of others have had turns since', async () => {
  const process = sqlitePlace().start();
  const owners = ['0a', '5b', 'ac'];
  const senders = ['one', 'other'];
  const waiting = senders.flatMap((sender) => owners.map((owner) => ({ sender, owner })));
  await addAll(process, ...waiting.map((client, n) => newDelivery(n + 1, client)));
  const clients = new DueClients(process.database.db);
  const turns = new Set<string>();
  for (let turn = 0; turn < 30; turn += 1) {
    const [first] = clients.find('/hooks', { now: 1000, limit: 1, isIdle: () => true });
    if (first === undefined) throw new Error('nothing is due');
    turns.add(`${first.sender} ${first.owner}`);
    clients.onTurn('/hooks', first);
    for (let n = 0; n < 2000; n += 1) clients.onTurn('/busy', { sender: `sender-${n}`, owner: 'owner' });
  }
  expect([...turns].toSorted()).toEqual(waiting.map(({ sender, owner }) => `${sender} ${owner}`));
});
