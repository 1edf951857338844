import { expect, test } from 'vitest';
import { callbackPathOf } from '../../../src/http/delivery/write-callback.ts';

const route = { name: '/callbacks', path: '/callbacks' };
const of = (...paths: readonly string[]) =>
  callbackPathOf({ headers: ['Host', 'a', ...paths.flatMap((path) => ['Tidegate-Callback', path])] }, route);

test.each(['/callbacks', '/callbacks/', '/callbacks/orders/47-11', '/callbacks/a%20b/~c', '/callbacks/..a/.b'])(
  '%s is a path of the route for callbacks',
  (path) => expect(of(path)).toBe(path),
);

test.each([
  ...['/', '/other', '/callbacks2', 'callbacks', 'https://evil.test/callbacks', '//evil.test/callbacks', ''],
  ...['/callbacks/../admin', '/callbacks/%2e%2e/admin', '/callbacks/.%2E', '/callbacks/./a', '/callbacks/..'],
  ...['/callbacks?a=1', '/callbacks#a', '/callbacks/a b', '/callbacks/\\a', `/callbacks/${'x'.repeat(1024)}`],
])('%s is rejected', (path) => expect(of(path)).toBe(false));

test('a request with two of them, or on a route without callbacks, is rejected, and one without the header is not', () => {
  expect(of('/callbacks', '/callbacks')).toBe(false);
  expect(callbackPathOf({ headers: ['tidegate-callback', '/callbacks'] }, undefined)).toBe(false);
  expect([of(), callbackPathOf({ headers: [] }, undefined)]).toEqual([undefined, undefined]);
});
