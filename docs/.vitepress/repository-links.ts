/** Links of the documents, which GitHub shows as files, as links of the site. */
import { statSync } from 'node:fs';
import { join, normalize } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');
const REPOSITORY = 'https://github.com/tidegate/tidegate';

/**
 * Returns the link of the site. A link to what is not in docs/ leads to the repository.
 * @param href as written, relative to `folder`
 * @param folder of the document, in the repository
 */
export function siteLink(href: string, folder: string): string {
  if (/^(?:[a-z]+:|#|\/)/i.test(href)) return href;
  const [path = '', fragment] = href.split('#', 2);
  const target = normalize(join(folder, path));
  const suffix = fragment === undefined ? '' : `#${fragment}`;
  if (target.startsWith('docs/')) return `./${target.slice('docs/'.length)}${suffix}`;
  const kind = statSync(join(ROOT, target)).isDirectory() ? 'tree' : 'blob';
  return `${REPOSITORY}/${kind}/main/${target.replace(/\/$/, '')}${suffix}`;
}
