/**
 * Draws the page as the demo shows it, for README.md and docs/page.md.
 *
 *     npm run draw:page                                 writes docs/page-*.png
 *     npm run draw:page -- --out FOLDER --seconds 1     elsewhere, and sooner
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { BrowserContextOptions } from 'playwright-core';
import { startDemo } from '../../src/cli/demo-command.ts';
import { startBrowser } from '../support/admin/browser.ts';

const { values } = parseArgs({
  options: {
    out: { type: 'string', default: join(import.meta.dirname, '../../docs') },
    /** Until the charts show something. */
    seconds: { type: 'string', default: '90' },
  },
});

const VIEWS: Readonly<Record<string, BrowserContextOptions>> = {
  dark: { colorScheme: 'dark', viewport: { width: 1100, height: 800 } },
  light: { colorScheme: 'light', viewport: { width: 1100, height: 800 } },
  phone: { colorScheme: 'dark', viewport: { width: 360, height: 780 }, deviceScaleFactor: 1.5 },
};

const demo = await startDemo({ listen: '127.0.0.1:0', admin: '127.0.0.1:0' }, '0.1.0', () => undefined);
if (demo.kind === 'failed') throw new Error(demo.message);
const browser = await startBrowser();
mkdirSync(values.out, { recursive: true });
const pages = await Promise.all(
  Object.entries(VIEWS).map(async ([name, view]) => {
    const page = await (await browser.newContext(view)).newPage();
    await page.goto(String(demo.app.adminUrl));
    return { name, page };
  }),
);
await sleep(1000 * Number(values.seconds));
for (const { name, page } of pages) {
  await page.bringToFront();
  await page.waitForTimeout(1500);
  await page.screenshot({ path: join(values.out, `page-${name}.png`) });
}
await browser.close();
await demo.stop();
