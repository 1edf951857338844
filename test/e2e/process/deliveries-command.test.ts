/** `tidegate deliveries` beside a Tidegate that stores deliveries in SQLite. */
import { expect, test } from 'vitest';
import type { DeliveriesPage, DeliveryDetails } from '../../../src/admin/page/api-types.ts';
import { TOKEN } from '../../support/admin/admin-api.ts';
import { startShop } from '../../support/deliveries/admin-shop.ts';
import { run, startProcess } from '../../support/proxy/process.ts';
import { eventually } from '../../support/proxy/tidegate.ts';

/** More than a page of the API. */
const MANY = 520;
const SENDERS = 40;
/** Clears a terminal. */
const HOSTILE = 'evt\u009b2J';

async function setUp() {
  const shop = await startShop();
  const env = { TIDEGATE_ADMIN: shop.gate.adminUrl, TIDEGATE_ADMIN_TOKEN: TOKEN };
  const deliveries = (...args: readonly string[]) => run(['deliveries', ...args], env);
  const lines = async (...args: readonly string[]): Promise<string[]> => {
    const { code, stdout, stderr } = await deliveries(...args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return stdout.trimEnd().split('\n');
  };
  const json = async <T>(...args: readonly string[]): Promise<T> => JSON.parse((await lines(...args)).join('\n')) as T;
  /** Returns the ids of so many dead ones. */
  const makeDead = async (count: number): Promise<readonly string[]> => {
    const ids: string[] = [];
    const notifyAll = async (sender: number): Promise<void> => {
      for (let n = sender; n < count; n += SENDERS) {
        ids.push(await shop.notify(`dead-${n}`, '/hooks', ['X-Event', `event-${n}`]));
      }
    };
    await Promise.all(Array.from({ length: SENDERS }, (_, sender) => notifyAll(sender)));
    await eventually(
      async () => (await shop.list()).totals.counts,
      ({ dead }) => dead === count,
    );
    return ids;
  };
  return { ...shop, env, deliveries, lines, json, makeDead };
}

test('lists, shows, cancels and retries a delivery', async () => {
  const { gate, repair, notify, until, deliveries, lines, json, list } = await setUp();
  expect((await lines('list'))[0]).toBe('no delivery matches');
  const dead = await notify('dead-1\u009b', '/hooks?x=1', ['X-Event', HOSTILE]);
  await until(dead, 'dead');
  const slow = await notify('dead-2', '/slow');
  await eventually(
    () => list('?state=waiting'),
    ({ deliveries: [first] }) => first?.attempts === 1,
  );

  const first = await lines('list', '--limit', '1');
  expect(first).toEqual([
    expect.stringMatching(/^id +state +route +accepted +attempts +next or end +last result +event$/),
    expect.stringMatching(new RegExp(`^${dead}  dead {3}/hooks  \\S+Z +2  \\S+Z  status_400 +evt\\S*�2J$`)),
    '',
    expect.stringMatching(
      /^in all: 1 waiting, 0 sending, 0 delivered, 1 dead, 0 canceled, 0 unknown; \d+B of messages; the oldest /,
    ),
    `next page: tidegate deliveries list --after ${dead} --limit 1`,
  ]);
  const next = await lines('list', '--limit', '1', '--after', dead);
  expect(next[1]).toMatch(new RegExp(`^${slow}  waiting  /slow`));
  expect((await json<DeliveriesPage>('list', '--state', 'dead', '--json')).deliveries.map(({ id }) => id)).toEqual([
    dead,
  ]);

  const shown = (await deliveries('show', dead, '--message')).stdout;
  expect(shown).toMatch(new RegExp(`^${dead}: dead\n`));
  expect(shown).toMatch(/attempt 2: not acknowledged, the upstream responded with 400 after /);
  expect(shown).toMatch(/\nPOST \/hooks\?x=1\n[^]*\n\ndead-1�\n$/);
  expect((await json<DeliveryDetails>('show', dead, '--message', '--json')).message?.body).toBe('dead-1\u009b');

  expect((await lines('cancel', slow)).at(-1)).toBe(
    'It is not sent, unless it is retried before it is removed (keepFor).',
  );
  expect((await lines('show', slow)).at(-1)).toMatch(/^ {2}\S+Z {2}canceled by an operator$/);
  repair();
  expect((await lines('retry', dead)).at(-1)).toBe('It is due now, with a new schedule.');
  await until(dead, 'delivered');
  expect((await lines('show', dead)).at(-1)).toMatch(/^ {2}\S+Z {2}delivered$/);

  for (const [args, problem] of [
    [['cancel', dead], `${dead}: It is already delivered: only a waiting delivery can be canceled.`],
    [['show', 'none'], 'none: No such delivery.'],
  ] as const) {
    expect(await deliveries(...args)).toEqual({ code: 1, stdout: '', stderr: `tidegate: ${problem}\n` });
  }
  const without = await run(['deliveries', 'retry', slow], { TIDEGATE_ADMIN: gate.adminUrl });
  expect([without.code, without.stderr]).toEqual([
    1,
    expect.stringContaining('set it with --token or TIDEGATE_ADMIN_TOKEN'),
  ]);
});

test('exports and retries many deliveries', async () => {
  const { upstream, env, repair, list, deliveries, lines, json, makeDead } = await setUp();
  const ids = await makeDead(MANY);

  // An export has a line of JSON for each, with its message if it is wanted.
  const rows = (await lines('export')).map((line) => JSON.parse(line) as DeliveryDetails);
  expect(rows.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
  expect(rows[0]).not.toHaveProperty('message');
  const rest = (await lines('export', '--message', '--state', 'dead', '--after', rows[MANY - 3]?.id ?? '')).map(
    (line) => JSON.parse(line) as DeliveryDetails,
  );
  expect(rest.map(({ id }) => id)).toEqual(rows.slice(-2).map(({ id }) => id));
  expect(rest.map(({ message }) => message?.body.replace('dead', 'event'))).toEqual(rest.map(({ eventId }) => eventId));
  // It ends quietly if the pipe is closed.
  const { child, ended } = startProcess(['deliveries', 'export', '--message'], { env });
  child.stdout.once('data', () => child.stdout.destroy());
  const { code, stdout, stderr } = await ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout.split('\n').length).toBeLessThan(MANY);

  // A retry needs their number.
  const query = ['--state', 'dead', '--route', '/hooks'] as const;
  const command = `tidegate deliveries retry --state dead --route /hooks`;
  expect(await lines('retry', ...query)).toEqual([
    `${MANY} deliveries match. To retry them:`,
    `  ${command} --confirm ${MANY}`,
  ]);
  expect(await json('retry', '--state', 'dead', '--route', '/slow', '--json')).toEqual({ matching: 0 });
  expect(await deliveries('retry', ...query, '--confirm', String(MANY - 1))).toEqual({
    ...{ code: 1, stdout: '' },
    stderr: `tidegate: ${MANY} deliveries match, not ${MANY - 1}: nothing was retried; look again with ${command}\n`,
  });
  expect((await list()).totals.counts.dead).toBe(MANY);
  repair();
  expect(await lines('retry', ...query, '--confirm', String(MANY))).toEqual([
    `${MANY} of ${MANY} deliveries retried: due now, with a new schedule`,
  ]);
  await eventually(
    async () => (await list()).totals.counts,
    ({ delivered }) => delivered === MANY,
  );
  expect(upstream.hits.length).toBe(3 * MANY);
});
