import { expect, test } from 'vitest';
import { runDiff } from '../../../src/cli/diff-command.ts';

test('says that repeats of earlier writes may be new ones if what identifies a write changes', () => {
  const files = new Map([
    ['old.yaml', 'upstreams: {api: {url: "https://a.example"}}'],
    ['new.yaml', 'upstreams: {api: {url: "https://a.example", idempotency: {header: X-Key}, timeout: 3s}}'],
  ]);
  const environment = { env: {}, readFile: (path: string) => files.get(path) ?? '' };
  const { text } = runDiff('old.yaml', 'new.yaml', false, environment);
  expect(text).toContain(
    'upstreams.api.idempotency.header: Idempotency-Key → X-Key (a repeat of an earlier write may be a new write',
  );
  expect(text.match(/new write/g)).toHaveLength(1);
  const json = JSON.parse(runDiff('old.yaml', 'new.yaml', true, environment).text) as object;
  expect(json).toMatchObject({
    changes: expect.arrayContaining([
      expect.objectContaining({
        path: 'upstreams.api.idempotency.header',
        meaning: expect.stringContaining('may be a new write') as string,
      }),
    ]) as unknown,
  });
});
