import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodeDeliveryMessage, encodeDeliveryMessage } from '../../../src/store/deliveries/delivery-message-codec.ts';
import { decodeDeliveryResult, encodeDeliveryResult } from '../../../src/store/deliveries/delivery-result-codec.ts';

const text = fc.oneof(fc.string({ unit: 'grapheme' }), fc.string({ minLength: 120, maxLength: 40_000, size: 'max' }));
const filled = fc.string({ minLength: 1 });
/** With or without what names the client, and the key for the upstream. */
const owners = fc.record({ name: filled, kind: text });
const messages = fc
  .record({
    ...{ method: text, target: text, peer: text },
    headers: fc.array(text, { maxLength: 200 }),
    body: fc.uint8Array({ maxLength: 1000 }).map((bytes) => Buffer.from(bytes)),
  })
  .chain((message) =>
    fc.oneof(
      fc.constant(message),
      owners.map((keyOwner) => ({ ...message, keyOwner })),
      filled.map((upstreamKey) => ({ ...message, upstreamKey })),
      fc.record({ keyOwner: owners, upstreamKey: filled }).map((keys) => ({ ...message, ...keys })),
    ),
  );
const MESSAGE = { method: 'POST', target: '/', peer: '::1', headers: ['Host', 'a'], body: Buffer.from('body') };

test('a message is decoded as it was encoded', () => {
  fc.assert(
    fc.property(messages, (message) => {
      expect(decodeDeliveryMessage(encodeDeliveryMessage(message))).toEqual(message);
    }),
    { numRuns: 50 },
  );
});

test('a message takes few bytes besides its texts and body', () => {
  const texts = [MESSAGE.method, MESSAGE.target, MESSAGE.peer, ...MESSAGE.headers];
  const each = texts.reduce((sum, { length }) => sum + length + 1, 0);
  expect(encodeDeliveryMessage(MESSAGE).length).toBe(2 + each + MESSAGE.body.length);
});

test('bytes of another version, or cut ones, are no message', () => {
  const bytes = encodeDeliveryMessage(MESSAGE);
  for (let length = 0; length < bytes.length - MESSAGE.body.length; length += 1) {
    expect(decodeDeliveryMessage(bytes.subarray(0, length))).toBe(undefined);
  }
  expect(decodeDeliveryMessage(Buffer.concat([Buffer.from([3]), bytes.subarray(1)]))).toBe(undefined);
});

test('a message that names its client is none of the version before, which could not send it', () => {
  expect(encodeDeliveryMessage(MESSAGE)[0]).toBe(1);
  expect(encodeDeliveryMessage({ ...MESSAGE, keyOwner: undefined, upstreamKey: undefined })[0]).toBe(1);
  const keyed = encodeDeliveryMessage({ ...MESSAGE, keyOwner: { name: 'name\0alice', kind: 'name' } });
  expect(keyed[0]).toBe(2);
  for (let length = 0; length < keyed.length - MESSAGE.body.length; length += 1) {
    expect(decodeDeliveryMessage(keyed.subarray(0, length))).toBe(undefined);
  }
});

test('any bytes are decoded or refused', () => {
  fc.assert(
    fc.property(fc.constantFrom(1, 2), fc.uint8Array(), (version, bytes) => {
      const message = decodeDeliveryMessage(Buffer.from([version, ...bytes]));
      expect(message === undefined || message.body.length < bytes.length + 1).toBe(true);
    }),
  );
});

test('a result is decoded as it was encoded, without a body too', () => {
  const results = fc.record({
    status: fc.integer({ min: 100, max: 999 }),
    headers: fc.array(text, { maxLength: 50 }),
    body: fc.option(
      fc.uint8Array({ maxLength: 1000 }).map((bytes) => Buffer.from(bytes)),
      { nil: undefined },
    ),
  });
  fc.assert(
    fc.property(results, (result) => {
      expect(decodeDeliveryResult(encodeDeliveryResult(result))).toEqual(result);
    }),
    { numRuns: 30 },
  );
});
