import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
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
  readonly keyOwner?: string | undefined;
  readonly from?: 'header' | 'minted';
  readonly rawHeaders?: readonly string[];
}

function routed({
  keyScope = 'client',
  accounts = ['main'],
  key = 'order-1',
  keyOwner = ALICE,
  from = 'header',
  rawHeaders = ['Idempotency-Key', 'order-1'],
}: Settings = {}): Routed {
  const header = { name: 'Idempotency-Key', lower: 'idempotency-key' };
  const target = { accounts: { names: accounts, headers: new Set() }, idempotency: { header, keyScope } };
  return {
    request: { rawHeaders },
    route: { target },
    client: { keyOwner },
    key: key && { value: key, from },
  } as unknown as Routed;
}

describe('the derived key', () => {
  test('is a UUID of version 8 from SHA-256 over domain, owner and key', () => {
    const digest = createHash('sha256')
      .update('["tidegate idempotency key 1","name\\u0000alice","order-1"]')
      .digest('hex');
    const derived = deriveUpstreamKey(ALICE, 'order-1');
    expect(derived).toMatch(UUID_8);
    const bits = derived.replaceAll('-', '');
    expect(bits.slice(0, 12) + bits.slice(13, 16) + bits.slice(17)).toBe(
      digest.slice(0, 12) + digest.slice(13, 16) + digest.slice(17, 32),
    );
  });

  test('never changes, because a repeat after an upgrade would be a new write', () => {
    expect(deriveUpstreamKey(ALICE, 'order-1')).toBe('51e50eff-531c-8de1-b361-860f1fbbeda8');
  });

  test('differs for each owner and key, also if their texts run together', () => {
    const pairs = [
      [ALICE, 'order-1'],
      [ALICE, 'order-2'],
      ['name\0bob', 'order-1'],
      ['header:x-client\0alice', 'order-1'],
      ['name\0a', 'lice","order-1'],
      [undefined, 'order-1'],
    ] as const;
    expect(new Set(pairs.map(([owner, key]) => deriveUpstreamKey(owner, key))).size).toBe(pairs.length);
  });
});

describe('which key the upstream gets', () => {
  const own = deriveUpstreamKey(ALICE, 'order-1');
  const others = deriveUpstreamKey('name\0bob', 'order-1');

  test.each([
    ['client', undefined, true],
    ['client', '', true],
    ['client', 'main@ep', false],
    ['client', `main/${own}@ep`, true],
    ['client', `main/${others}@ep`, true],
    ['shared', undefined, false],
    ['shared', 'main@ep', false],
    ['shared', `main/${own}@ep`, true],
    ['shared', `main/${others}@ep`, false],
  ] as const)('with keyScope %s and the recorded place %j, derives it: %s', (keyScope, place, isDerived) => {
    expect(derivesKeys(routed({ keyScope }), place)).toBe(isDerived);
    expect(upstreamKeyOf(routed({ keyScope }), place)).toBe(isDerived ? own : undefined);
  });
});

describe('the headers for the upstream', () => {
  const rewrite = (...headers: string[]) => withUpstreamKeys(headers, routed());

  test('have the derived key in each line that the upstream may read as the key', () => {
    const [one, two] = [deriveUpstreamKey(ALICE, 'order-1'), deriveUpstreamKey(ALICE, 'order-2')];
    expect(rewrite('Host', 'a', 'idempotency-key', ' order-1', 'Idempotency_Key', 'order-2', 'X', 'order-1')).toEqual([
      'Host',
      'a',
      'idempotency-key',
      one,
      'Idempotency_Key',
      two,
      'X',
      'order-1',
    ]);
  });

  test('keep an empty key', () => {
    expect(rewrite('Idempotency-Key', '')).toEqual(['Idempotency-Key', '']);
  });

  test('derive the key from its text, whether or not a client escapes it as UTF-8', () => {
    const utf8 = Buffer.from('é').toString('latin1');
    expect(rewrite('Idempotency-Key', utf8)).toEqual(['Idempotency-Key', deriveUpstreamKey(ALICE, 'é')]);
  });
});

describe('a key in a response', () => {
  const derived = deriveUpstreamKey(ALICE, 'order-1');

  test('becomes the key of the client, as it was written', () => {
    const response = ['Idempotency-Key', derived, 'Original', derived];
    expect(withClientKey(response, routed())).toEqual(['Idempotency-Key', 'order-1', 'Original', derived]);
  });

  test('becomes the generated key that the client knows', () => {
    const minted = routed({ from: 'minted', rawHeaders: [] });
    expect(withClientKey(['idempotency-key', derived], minted)).toEqual(['idempotency-key', 'order-1']);
  });

  test('stays if it is another one', () => {
    expect(withClientKey(['Idempotency-Key', 'x'], routed())).toEqual(['Idempotency-Key', 'x']);
  });
});
