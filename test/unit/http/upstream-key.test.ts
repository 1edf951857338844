import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  ambiguousUpstreamKeys,
  deriveUpstreamKey,
  derivesKeys,
  upstreamKeyOf,
  withClientKey,
  withUpstreamKeys,
} from '../../../src/http/idempotency/upstream-key.ts';

const ALICE = 'name\0alice';
const UUID_8 = /^[\da-f]{8}-[\da-f]{4}-8[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;

type Routed = Parameters<typeof withClientKey>[1];

interface Settings {
  readonly keyScope?: 'client' | 'shared';
  readonly accounts?: readonly string[] | undefined;
  readonly key?: string | undefined;
  /** Its name; empty for none. */
  readonly keyOwner?: string;
  readonly from?: 'header' | 'minted';
  readonly rawHeaders?: readonly string[];
  readonly account?: string;
  /** Of an attempt of a delivery. */
  readonly delivery?: { readonly delivery: string; readonly upstreamKey?: string };
}

function derive(owner: string, key: string, account = ''): string {
  return deriveUpstreamKey({ owner, account, key });
}

function routed({
  keyScope = 'client',
  accounts = ['main'],
  key = 'order-1',
  keyOwner = ALICE,
  from = 'header',
  rawHeaders = ['Idempotency-Key', 'order-1'],
  account,
  delivery,
}: Settings = {}): Routed {
  const header = { name: 'Idempotency-Key', lower: 'idempotency-key' };
  const sources = account === undefined ? [] : [{ kind: 'header', header: 'x-account' }];
  const idempotency = { header, keyScope, account: sources };
  const target = { accounts: accounts && { names: accounts, headers: new Set() }, idempotency };
  return {
    request: { rawHeaders, headers: { 'x-account': account }, ...delivery },
    route: { target },
    client: { keyOwner: keyOwner === '' ? undefined : { name: keyOwner, kind: 'name' } },
    key: key === '' ? undefined : { value: key, from },
  } as unknown as Routed;
}

describe('the derived key', () => {
  test('is a UUID of version 8 from SHA-256 over domain, owner, account and key', () => {
    const digest = createHash('sha256')
      .update('["tidegate idempotency key 1","name\\u0000alice","","order-1"]')
      .digest('hex');
    const derived = derive(ALICE, 'order-1');
    expect(derived).toMatch(UUID_8);
    const bits = derived.replaceAll('-', '');
    expect(bits.slice(0, 12) + bits.slice(13, 16) + bits.slice(17)).toBe(
      digest.slice(0, 12) + digest.slice(13, 16) + digest.slice(17, 32),
    );
  });

  test('never changes, because a repeat after an upgrade would be a new write', () => {
    expect(derive(ALICE, 'order-1')).toBe('30f38f61-ecc3-8b0c-b2f2-a65c060c99dc');
  });

  test('differs for each owner, account and key, also if their texts run together', () => {
    const keys = [
      derive(ALICE, 'order-1'),
      derive(ALICE, 'order-2'),
      derive(ALICE, 'order-1', 'x-account=acct_1'),
      derive(ALICE, 'order-1', 'x-account=acct_2'),
      derive('name\0bob', 'order-1'),
      derive('header:x-client\0alice', 'order-1'),
      derive('name\0a', 'lice","order-1'),
      derive('', 'order-1'),
    ];
    expect(new Set(keys).size).toBe(keys.length);
  });

  test('depends on what the request names as the account of its key', () => {
    const [one, other] = ['acct_1', 'acct_2'].map((account) => upstreamKeyOf(routed({ account })));
    expect(one).toBe(derive(ALICE, 'order-1', 'x-account=acct_1'));
    expect(other).not.toBe(one);
  });
});

describe('which key the upstream gets', () => {
  const own = derive(ALICE, 'order-1');

  test.each([
    ['client', undefined, own],
    ['client', '', own],
    ['client', 'main@ep', undefined],
    ['client', `main/${own}@ep`, own],
    ['client', 'main/a-recorded-key@ep', 'a-recorded-key'],
    ['shared', undefined, undefined],
    ['shared', 'main@ep', undefined],
    ['shared', `main/${own}@ep`, own],
  ] as const)('with keyScope %s and the recorded place %j: %s', (keyScope, place, key) => {
    expect(upstreamKeyOf(routed({ keyScope }), place)).toBe(key);
  });

  test.each(['client', 'shared'] as const)(
    'an attempt of a delivery sends the stored key with keyScope %s',
    (keyScope) => {
      const stored = routed({ keyScope, delivery: { delivery: 'd1', upstreamKey: 'stored' } });
      expect([derivesKeys(stored), upstreamKeyOf(stored)]).toEqual([true, 'stored']);
      const plain = routed({ keyScope, delivery: { delivery: 'd1' } });
      expect([derivesKeys(plain), upstreamKeyOf(plain)]).toEqual([false, undefined]);
    },
  );
});

describe('the headers for the upstream', () => {
  const rewrite = (headers: string[], settings?: Settings, key?: string) =>
    withUpstreamKeys(headers, routed(settings ?? { key: '' }), key);

  test('have the derived key in each line that the upstream may read as the key', () => {
    const [one, two] = [derive(ALICE, 'order-1'), derive(ALICE, 'order-2')];
    const lines = ['idempotency-key', ' order-1', 'Idempotency_Key', 'order-2'];
    const expected = ['Host', 'a', 'idempotency-key', one, 'Idempotency_Key', two, 'X', 'order-1'];
    expect(rewrite(['Host', 'a', ...lines, 'X', 'order-1'])).toEqual(expected);
    expect(ambiguousUpstreamKeys(routed({ key: '', rawHeaders: lines }))).toBe(`${one}, ${two}`);
  });

  test('have the key that is recorded', () => {
    expect(rewrite(['Idempotency-Key', 'order-1'], {}, 'recorded')).toEqual(['Idempotency-Key', 'recorded']);
    expect(rewrite(['Idempotency-Key', 'order-1'], {}, undefined)).toEqual(['Idempotency-Key', 'order-1']);
  });

  test('keep an empty key', () => {
    expect(rewrite(['Idempotency-Key', ''])).toEqual(['Idempotency-Key', '']);
  });

  test('keep the quotes of a structured field', () => {
    expect(rewrite(['Idempotency-Key', '"order-1"'])).toEqual(['Idempotency-Key', `"${derive(ALICE, '"order-1"')}"`]);
  });

  test('derive the key from its text, whether or not a client escapes it as UTF-8', () => {
    const utf8 = Buffer.from('é').toString('latin1');
    expect(rewrite(['Idempotency-Key', utf8])).toEqual(['Idempotency-Key', derive(ALICE, 'é')]);
  });
});

describe('a key in a response', () => {
  const derived = derive(ALICE, 'order-1');
  const show = (headers: string[], settings: Settings = {}, upstreamKey?: string) =>
    withClientKey(headers, routed(settings), { upstreamKey });

  test('becomes the key of the client, as it was written', () => {
    expect(show(['Idempotency-Key', derived, 'Original', derived])).toEqual([
      'Idempotency-Key',
      'order-1',
      'Original',
      derived,
    ]);
  });

  test('becomes the key of the client if a recorded key was sent', () => {
    expect(show(['Idempotency-Key', 'recorded'], { keyScope: 'shared' }, 'recorded')).toEqual([
      'Idempotency-Key',
      'order-1',
    ]);
  });

  test('becomes the key in quotes that the client wrote', () => {
    const settings = { key: '"order-1"', rawHeaders: ['Idempotency-Key', '"order-1"'] };
    const sent = `"${derive(ALICE, '"order-1"')}"`;
    expect(show(['Idempotency-Key', sent], settings)).toEqual(['Idempotency-Key', '"order-1"']);
  });

  test.each([['Idempotency_Key'], ['Idempotency-Key']])('becomes one of several lines, here %s', (name) => {
    const settings = { key: '', rawHeaders: ['Idempotency-Key', 'order-0', name, 'order-1'] };
    expect(show(['Idempotency-Key', derived], settings)).toEqual(['Idempotency-Key', 'order-1']);
  });

  test('becomes those of several lines if the upstream has joined them', () => {
    const lines = ['Idempotency-Key', 'order-0', 'Idempotency-Key', 'order-$1'];
    const joined = `${derive(ALICE, 'order-0')}, ${derive(ALICE, 'order-$1')}`;
    expect(show(['Idempotency-Key', joined], { key: '', rawHeaders: lines })).toEqual([
      'Idempotency-Key',
      'order-0, order-$1',
    ]);
  });

  test('becomes the generated key that the client knows', () => {
    expect(show(['idempotency-key', derived], { from: 'minted', rawHeaders: [] })).toEqual([
      'idempotency-key',
      'order-1',
    ]);
  });

  test('stays if it is another one', () => {
    expect(show(['Idempotency-Key', 'x'])).toEqual(['Idempotency-Key', 'x']);
  });
});
