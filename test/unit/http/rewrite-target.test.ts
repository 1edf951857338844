import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { rewriteTarget } from '../../../src/http/request/router.ts';

describe('rewritePrefix replaces the path of the route', () => {
  test.each([
    // Both end with a slash, or neither does: the rest of the path stays unchanged.
    ['/api/', '/v1/', '/api/users', '/v1/users'],
    ['/api/', '/v1/', '/api//users', '/v1//users'],
    ['/api/', '/v1/', '/api///', '/v1///'],
    ['/api/', '/v1/', '/api/', '/v1/'],
    ['/api/', '/v1/', '/api/?q', '/v1/?q'],
    ['/api/', '/v1/', '/api/%2Fusers', '/v1/%2Fusers'],
    ['/api', '/v1', '/api', '/v1'],
    ['/api', '/v1', '/api/', '/v1/'],
    ['/api', '/v1', '/api//users', '/v1//users'],
    ['/api', '/v1', '/api?a//b', '/v1?a//b'],
    // Only the path ends with one: a slash separates prefix and rest, if there is a rest.
    ['/api/', '/v1', '/api/users', '/v1/users'],
    ['/api/', '/v1', '/api//users', '/v1//users'],
    ['/api/', '/v1', '/api/', '/v1'],
    ['/api/', '/v1', '/api/?q', '/v1?q'],
    ['/', '/v1', '/users', '/v1/users'],
    ['/', '/v1', '/', '/v1'],
    ['/', '/v1', '/?q=/', '/v1?q=/'],
    ['/', '/v1', '/users//', '/v1/users//'],
    // Only the prefix does: exactly one of the two slashes is dropped.
    ['/api', '/v1/', '/api/users', '/v1/users'],
    ['/api', '/v1/', '/api//users', '/v1//users'],
    ['/api', '/v1/', '/api', '/v1/'],
    ['/api', '/v1/', '/api/', '/v1/'],
    ['/api', '/v1/', '/api?q', '/v1/?q'],
    ['/api', '/', '/api', '/'],
    ['/api', '/', '/api/x', '/x'],
    ['/api', '/', '/api?q', '/?q'],
    // These would name a host, and are rejected before the send.
    ['/api', '/', '/api//x', '//x'],
    ['/api/', '/', '/api//x', '//x'],
    ['/', '/', '/a//b', '/a//b'],
    ['/', '/v1/', '/users', '/v1/users'],
  ])('path %s, prefix %s: %s becomes %s', (path, rewritePrefix, target, sent) => {
    expect(rewriteTarget(target, { path, rewritePrefix })).toBe(sent);
  });

  test('but never of *, which concerns the whole server', () => {
    expect(rewriteTarget('*', { path: '/', rewritePrefix: '/v1' })).toBe('*');
  });
});

test('no byte after the path of the route is lost', () => {
  const slashes = fc.constantFrom('', '/');
  const rest = fc.string({ unit: fc.constantFrom('/', 'a', '%2F', '%2f', '.', '?', '//', ';'), maxLength: 8 });
  fc.assert(
    fc.property(slashes, slashes, rest, (ofPath, ofPrefix, behind) => {
      const tail = ofPath === '/' || /^(?:[/?]|$)/.test(behind) ? behind : `/${behind}`;
      const sent = rewriteTarget(`/api${ofPath}${tail}`, { path: `/api${ofPath}`, rewritePrefix: `/v1${ofPrefix}` });
      const isWhole = /^(?:\?|$)/.test(tail);
      // Without the slash of the prefix, the result is the same as for a path without its own.
      if (isWhole) expect(sent).toBe(`/v1${ofPrefix}${tail}`);
      else expect(sent).toBe(`/v1${ofPath}${tail}`);
    }),
  );
});
