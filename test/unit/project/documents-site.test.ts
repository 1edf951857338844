/** The site that is built from docs/. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { siteLink } from '../../../docs/.vitepress/repository-links.ts';
import { SIDEBAR } from '../../../docs/.vitepress/sidebar.ts';

const DOCS = join(import.meta.dirname, '../../../docs');

test('each page is in the sidebar once', () => {
  const pages = readdirSync(DOCS)
    .filter((name) => name.endsWith('.md') && name !== 'index.md')
    .map((name) => `/${name.replace(/\.md$/, '')}`);
  const linked = SIDEBAR.flatMap(({ items }) => items.map(({ link }) => link));
  expect(linked.toSorted()).toEqual(pages.toSorted());
});

test.each([
  ['idempotency.md#send-a-write-later', 'docs', './idempotency.md#send-a-write-later'],
  ['control/ceiling.svg', 'docs', './control/ceiling.svg'],
  ['docs/metrics.md', '.', './metrics.md'],
  ['../config/tidegate.yaml', 'docs', 'https://github.com/tidegate/tidegate/blob/main/config/tidegate.yaml'],
  ['../config/helm/tidegate', 'docs', 'https://github.com/tidegate/tidegate/tree/main/config/helm/tidegate'],
  ['../test/', 'docs', 'https://github.com/tidegate/tidegate/tree/main/test'],
  ['CONTRIBUTING.md', '.', 'https://github.com/tidegate/tidegate/blob/main/CONTRIBUTING.md'],
  ['#try-it', '.', '#try-it'],
  ['https://example.com/a', 'docs', 'https://example.com/a'],
])('the link %s in the folder %s is %s', (href, folder, link) => {
  expect(siteLink(href, folder)).toBe(link);
});

test('a link to a file that does not exist fails', () => {
  expect(() => siteLink('../config/no-such-file.yaml', 'docs')).toThrow('ENOENT');
});
