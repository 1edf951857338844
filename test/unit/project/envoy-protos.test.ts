import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { makeDescriptor } from '../../../scripts/grpc/descriptor.ts';

test('envoy-api.json is what the protocol definitions of Envoy generate: else run npm run protos', () => {
  const file = new URL('../../../src/http/ext-authz/grpc/envoy-api.json', import.meta.url);
  expect(readFileSync(file, 'utf8')).toBe(makeDescriptor());
});
