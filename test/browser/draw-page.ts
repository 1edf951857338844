// Draws the page as the demo shows it, for README.md and docs/page.md: npm run draw:page

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { BrowserContextOptions } from 'playwright-core';
import { startDemo } from '../../src/cli/demo-command.ts';
import { startBrowser } from '../support/admin/browser.ts';

const DOCS = join(import.meta.dirname, '../../docs');
/** Milliseconds until the charts show something. */
const WATCHED = 90_000;

const VIEWS: Readonly<Record<string, BrowserContextOptions>> = {
  dark: { colorScheme: 'dark', viewport: { width: 1100, height: 800 } },
  light: { colorScheme: 'light', viewport: { width: 1100, height: 800 } },
  phone: { colorScheme: 'dark', viewport: { width: 360, height: 780 }, deviceScaleFactor: 1.5 },
};

const demo = await startDemo({ listen: '127.0.0.1:0', admin: '127.0.0.1:0' }, '0.1.0', () => undefined);
if (demo.kind === 'failed') throw new Error(demo.message);
const browser = await startBrowser();
mkdirSync(DOCS, { recursive: true });
const pages = await Promise.all(
  Object.entries(VIEWS).map(async ([name, view]) => {
    const page = await (await browser.newContext(view)).newPage();
    await page.goto(String(demo.app.adminUrl));
    return { name, page };
  }),
);
await new Promise((resolve) => {
  setTimeout(resolve, WATCHED);
});
for (const { name, page } of pages) {
  await page.bringToFront();
  await page.waitForTimeout(1500);
  await page.screenshot({ path: join(DOCS, `page-${name}.png`) });
}
await browser.close();
await demo.stop();
