import { defineConfig, type MarkdownOptions } from 'vitepress';
import { siteLink } from './repository-links.ts';
import { SIDEBAR } from './sidebar.ts';

/** The first page is README.md, whose links are relative to the root of the repository. */
const folderOf = (page: unknown): string => (page === 'index.md' ? '.' : 'docs');

/** Rewrites links and the addresses of images before VitePress resolves and checks them. */
const adaptLinks: MarkdownOptions['config'] = (md) => {
  md.core.ruler.push('site-links', ({ tokens, env }) => {
    const folder = folderOf(Reflect.get(Object(env), 'relativePath'));
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      for (const name of ['href', 'src']) {
        const value = token.attrGet(name);
        if (value !== null) token.attrSet(name, siteLink(value, folder));
      }
    }
  });
};

export default defineConfig({
  title: 'Tidegate',
  description: 'An HTTP reverse proxy that learns the rate limit of an API',
  lang: 'en',
  cleanUrls: true,
  lastUpdated: false,
  markdown: { config: adaptLinks, languageAlias: { caddyfile: 'nginx' } },
  themeConfig: {
    sidebar: SIDEBAR,
    outline: { level: [2, 3] },
    search: { provider: 'local' },
    socialLinks: [{ icon: 'github', link: 'https://github.com/tidegate/tidegate' }],
    editLink: {
      pattern: ({ filePath }) =>
        `https://github.com/tidegate/tidegate/edit/main/${filePath === 'index.md' ? 'README.md' : `docs/${filePath}`}`,
      text: 'Edit this page',
    },
  },
});
