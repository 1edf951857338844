import { expect, test } from 'vitest';
import { useBrowser } from '../support/admin/browser.ts';
import { send } from '../support/clients/send.ts';
import { eventually, startTidegate } from '../support/proxy/tidegate.ts';
import { accept, accountsOf, reject, startAccountUpstream } from '../support/upstreams/account-upstream.ts';

const open = useBrowser();

test('the page shows since when an account is in quarantine, and its next probe', async () => {
  const upstream = await startAccountUpstream({ 'of-main': reject(401), 'of-spare': accept });
  const tidegate = await startTidegate(`
upstreams: {psp: {url: "${upstream.url}", ${accountsOf({ main: 'of-main', spare: 'of-spare' })}}}
`);
  const { page, wrongs } = await open(String(tidegate.adminUrl));
  await page.waitForSelector('.upstream');
  await send(tidegate.url, '/');
  const accounts = page.locator('.upstream [data-accounts] li');
  await eventually(
    () => accounts.allTextContents(),
    ([main = '']) =>
      /^main – credential rejected since \d\d:\d\d:\d\d for one client or address, next probe in \d+ s; /.test(main),
  );
  expect((await accounts.allTextContents())[1]).toBe('spare – no limit, 0 in flight');
  expect(await accounts.first().getAttribute('data-severity')).toBe('warning');
  expect(wrongs).toEqual([]);
});
