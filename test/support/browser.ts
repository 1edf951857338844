/** Debian's Chromium, without a window, and what goes wrong in a page. */
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { chromium } from 'playwright-core';
import { afterAll, beforeAll, onTestFinished } from 'vitest';
import { findProgram } from '../setup/find-program.ts';

const FLAGS = [
  '--headless',
  '--no-sandbox', // root has none
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** One browser for the tests of a file. @returns what opens pages in it */
export function useBrowser(): Opener {
  let browser: Browser | undefined;
  beforeAll(async () => {
    browser = await startBrowser();
  }, 60_000);
  afterAll(() => browser?.close());
  return (url, options) => {
    if (browser === undefined) throw new Error('no browser has been started');
    return openPage(browser, url, options);
  };
}

export type Opener = (url: string, options?: BrowserContextOptions) => Promise<Opened>;

export interface Opened {
  readonly page: Page;
  /** Errors, violations of the content security policy, and requests to anywhere else: there are to be none. */
  readonly wrongs: readonly string[];
}

/** @throws where there is no Chromium */
export function startBrowser(): Promise<Browser> {
  const executablePath = findProgram('chromium');
  if (executablePath === undefined) throw new Error('no chromium: node test/setup/programs.ts tests');
  return chromium.launch({ executablePath, args: FLAGS });
}

/** A page of its own context: no storage is shared. Closed when the test ends. */
async function openPage(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<Opened> {
  const context = await browser.newContext(options);
  onTestFinished(() => context.close());
  const page = await context.newPage();
  const wrongs: string[] = [];
  page.on('pageerror', (error) => wrongs.push(`error: ${error.message}`));
  page.on('console', (message) => {
    // A connection that is lost is told by the page too, and by this in vain.
    const isNetwork = message.text().startsWith('Failed to load resource');
    if (message.type() === 'error' && !isNetwork) wrongs.push(`console: ${message.text()}`);
  });
  page.on('dialog', (dialog) => {
    wrongs.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== new URL(url).origin) wrongs.push(`request: ${request.url()}`);
  });
  await page.goto(url);
  return { page, wrongs };
}
