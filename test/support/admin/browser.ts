/** Debian's Chromium, headless, which records the errors of a page. */
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { chromium } from 'playwright-core';
import { afterAll, beforeAll } from 'vitest';
import { findProgram } from '../../setup/find-program.ts';
import { atEnd } from '../at-end.ts';

const FLAGS = [
  '--headless',
  '--no-sandbox', // root cannot use the sandbox
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Starts one browser for the tests of a file. @returns a function that opens pages in it */
export function useBrowser(): OpenPage {
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

export type OpenPage = (url: string, options?: BrowserContextOptions) => Promise<OpenedPage>;

export interface OpenedPage {
  readonly page: Page;
  /** Errors, violations of the content security policy, and requests to other origins. Expected to be empty. */
  readonly wrongs: readonly string[];
}

/**
 * The headless shell is preferred: the same engine without the windows of a desktop browser, which take half of the processor time.
 * @throws if neither is installed
 */
export function startBrowser(): Promise<Browser> {
  const executablePath = findProgram('chromium-headless-shell') ?? findProgram('chromium');
  if (executablePath === undefined) throw new Error('no chromium: node test/setup/programs.ts tests');
  return chromium.launch({ executablePath, args: FLAGS });
}

/** Opens a page in its own context, with its own storage. It is closed when the test ends. */
async function openPage(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<OpenedPage> {
  const context = await browser.newContext(options);
  atEnd(() => context.close());
  const page = await context.newPage();
  const wrongs: string[] = [];
  page.on('pageerror', (error) => wrongs.push(`error: ${error.message}`));
  page.on('console', (message) => {
    // The page shows lost connections itself, so these messages are ignored.
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
