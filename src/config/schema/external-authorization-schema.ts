import { z } from 'zod';
import { PathPrefix } from './route-schema.ts';

/** Long enough that nobody guesses it. */
const Token = z.string().min(16);

/** For an ingress that sends requests itself, and asks first. Who may ask, `clients.trustedProxies` says. */
export const Check = z.strictObject({
  path: PathPrefix.prefault('/check').describe(
    'Where proxies of clients.trustedProxies ask whether a request may pass; requests below it are theirs alone.',
  ),
  reportPath: PathPrefix.prefault('/report').describe(
    'Where those who sent a request say what came of it, with the token.',
  ),
  unrouted: z.enum(['pass', 'refuse']).prefault('pass').describe('What no route leads to may pass, or gets a 404.'),
  token: Token.optional().describe(
    'What who reports has to show, as Authorization: Bearer, at least 16 characters; without it nothing is taken.',
  ),
});
