import { expect, test } from 'vitest';
import { callbackPathOf } from '../../../src/http/delivery/write-callback.ts';
import type { Route } from '../../../src/http/request/route.ts';
import { Router } from '../../../src/http/request/router.ts';

// The router and the callback use nothing else of a route.
const route = (path: string, more = {}) =>
  ({ name: path, path, target: { name: 'shop' }, ...more }) as unknown as Route;
const router = new Router([
  route('/callbacks', { delivery: {} }),
  route('/callbacks/admin'),
  route('/callbacks/signed', { verify: {} }),
  route('/'),
]);
const of = (...paths: readonly string[]) =>
  callbackPathOf(
    { headers: ['Host', 'a', ...paths.flatMap((path) => ['Tidegate-Callback', path])] },
    '/callbacks',
    router,
  );

test.each(['/callbacks', '/callbacks/', '/callbacks/orders/47-11', '/callbacks/a%20b/~c', '/callbacks/..a/.b'])(
  '%s is a path of the route for callbacks',
  (path) => expect(of(path)).toBe(path),
);

test.each([
  ...['/', '/other', '/callbacks2', 'callbacks', 'https://evil.test/callbacks', '//evil.test/callbacks', ''],
  ...['/callbacks/../admin', '/callbacks/%2e%2e/admin', '/callbacks/.%2E', '/callbacks/./a', '/callbacks/..'],
  ...[
    '/callbacks/..;/admin',
    '/callbacks/a%2f..%2f..%2fadmin',
    '/callbacks/a%5c..',
    '/callbacks/a%00',
    '/callbacks/\\a',
  ],
  ...['/callbacks?a=1', '/callbacks#a', '/callbacks/a b', '/callbacks/\u00e9', `/callbacks/${'x'.repeat(1024)}`],
  ...['/callbacks/admin', '/callbacks/admin/a', '/callbacks/signed', '/callbacks/%73igned'],
])('%s is rejected', (path) => expect(of(path)).toBe(false));

test.each([
  '/hooks/%73tripe',
  '/hooks//stripe',
  '/hooks/Stripe',
  '/hooks/stripe;a',
  '/hooks/;a/stripe',
  '/hooks/stripe',
])(
  '%s is rejected, which a server may read as the path of another route, although the route for callbacks verifies',
  (path) => {
    const verifying = new Router([
      route('/hooks', { delivery: {}, verify: {} }),
      route('/hooks/stripe', { delivery: {}, verify: {} }),
      route('/'),
    ]);
    const headers = ['Host', 'a', 'Tidegate-Callback'];
    expect(callbackPathOf({ headers: [...headers, path] }, '/hooks', verifying)).toBe(false);
    expect(callbackPathOf({ headers: [...headers, '/hooks/a'] }, '/hooks', verifying)).toBe('/hooks/a');
  },
);

test('a request with two of them, or on a route without callbacks, is rejected, and one without the header is not', () => {
  expect(of('/callbacks', '/callbacks')).toBe(false);
  expect(callbackPathOf({ headers: ['tidegate-callback', '/callbacks'] }, undefined, router)).toBe(false);
  expect(callbackPathOf({ headers: ['tidegate-callback', '/'] }, '/', router)).toBe(false);
  expect([of(), callbackPathOf({ headers: [] }, undefined, router)]).toEqual([undefined, undefined]);
});
