import { expect, test } from 'vitest';
import { parseArguments } from '../../../src/cli/parse-arguments.ts';

const ID = '01a22ac8-d0dd-7008-b5c7-a26bf4feedb8';
const REST = { kind: 'deliveries', admin: undefined, token: undefined, json: false };

/** Arguments as typed in a shell. */
const typed = (line: string) => parseArguments(line.split(' '));

test('accepts the filters of a list, and of an export', () => {
  expect(typed('deliveries list')).toEqual({ ...REST, action: { name: 'list', query: {} } });
  expect(typed(`deliveries list --state open --route /hooks --after ${ID} --limit 500 --json --admin 1`)).toEqual({
    ...{ ...REST, json: true, admin: '1' },
    action: { name: 'list', query: { state: 'open', route: '/hooks', after: ID, limit: '500' } },
  });
  expect(typed(`deliveries export --state delivered --after ${ID} --message --token t`)).toEqual({
    ...{ ...REST, token: 't' },
    action: { name: 'export', query: { state: 'delivered', after: ID }, message: true },
  });
});

test('accepts one delivery to show, retry or cancel, and many to retry', () => {
  expect(typed(`deliveries show ${ID} --message`)).toMatchObject({ action: { name: 'show', id: ID, message: true } });
  expect(typed(`deliveries retry ${ID}`)).toEqual({ ...REST, action: { name: 'retry', id: ID } });
  expect(typed(`deliveries cancel ${ID} --json`)).toMatchObject({ action: { name: 'cancel', id: ID }, json: true });
  expect(typed('deliveries retry --state dead')).toMatchObject({
    action: { name: 'retry-all', query: { state: 'dead' }, confirmed: undefined },
  });
  expect(typed('deliveries retry --state canceled --route /hooks --confirm 12')).toMatchObject({
    action: { name: 'retry-all', query: { state: 'canceled', route: '/hooks' }, confirmed: 12 },
  });
});

test.each([
  ['deliveries', 'deliveries needs an action: list, show, retry, cancel or export'],
  ['deliveries lsit', "deliveries has no action 'lsit' (did you mean list?)"],
  ['deliveries nothing', "deliveries has no action 'nothing' (did you mean list, show, retry, cancel, export?)"],
  ['delivery list', "unknown command 'delivery' (did you mean deliveries?)"],
  [`deliveries list ${ID}`, `deliveries list takes no '${ID}' (did you mean deliveries show ${ID}?)`],
  [
    'deliveries list --state died',
    '--state: expected waiting, sending, delivered, dead, canceled, unknown, open (did you mean dead?)',
  ],
  ['deliveries list --limit 501', '--limit: expected a whole number from 1 to 500'],
  ['deliveries list --after 1', '--after: expected the id of a delivery'],
  ['deliveries list --route=', '--route: expected the name of a route, as in metrics'],
  ['deliveries list --mesage', 'unknown option --mesage (did you mean --message?)'],
  ['deliveries list --message', 'deliveries list takes no --message'],
  ['deliveries export --json', 'deliveries export takes no --json'],
  ['deliveries show', 'deliveries show needs an ID'],
  ['deliveries show a b', 'deliveries show takes one ID'],
  ['deliveries cancel a --state dead', 'deliveries cancel takes no --state'],
  ['deliveries retry', 'deliveries retry needs an ID, or --state dead'],
  ['deliveries retry --route /hooks', 'deliveries retry needs an ID, or --state dead'],
  ['deliveries retry a --state dead', 'deliveries retry takes one ID, or --state'],
  ['deliveries retry a --confirm 1', 'deliveries retry takes --confirm only with --state'],
  ['deliveries retry --state delivered', '--state: expected dead, canceled, waiting'],
  [
    'deliveries retry --state unknown',
    '--state: expected dead, canceled, waiting; look up each unknown write at the upstream, then retry it by its ID',
  ],
  ['deliveries retry --state dead --confirm all', '--confirm: expected the number of deliveries that match'],
])('%s', (line, message) => expect(typed(line)).toMatchObject({ kind: 'usage-error', message }));
