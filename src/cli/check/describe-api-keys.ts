import { parseKeyFile, type StoredApiKey } from '../../config/auth/key-file.ts';
import type { ConfigEnvironment } from '../../config/load/substitute.ts';
import type { Config } from '../../config/schema/config-schema.ts';
import type { EpochMillis } from '../../core/quota/calendar/quota-period.ts';

/** More keys than this are counted and not listed. */
const MAX_LISTED = 10;

/** How many API keys there are, and those that expire, the first to expire first. The file is readable: the configuration is valid. */
export function describeApiKeys(
  { clients }: Config,
  readFile: ConfigEnvironment['readFile'],
  now: EpochMillis,
): string[] {
  const { apiKeys } = clients.auth ?? {};
  if (apiKeys === undefined) return [];
  const keys = parseKeyFile(readFile(apiKeys.file));
  const expiring = keys
    .flatMap(({ expiresAt, ...key }) => (expiresAt === undefined ? [] : [{ ...key, expiresAt }]))
    .toSorted((a, b) => Date.parse(a.expiresAt) - Date.parse(b.expiresAt));
  const listed = expiring.slice(0, MAX_LISTED).map((key) => `  ${describeExpiry(key, now)}`);
  const unlisted = expiring.length - listed.length;
  return [
    `${apiKeys.file}: ${keys.length} ${keys.length === 1 ? 'API key' : 'API keys'}, ${expiring.length} with an expiry`,
    ...listed,
    ...(unlisted > 0 ? [`  and ${unlisted} more: tidegate clients list --file ${apiKeys.file}`] : []),
  ];
}

function describeExpiry({ id, client, expiresAt }: Omit<Required<StoredApiKey>, 'hash'>, now: EpochMillis): string {
  return `${id} of ${client}: ${Date.parse(expiresAt) <= now ? 'expired' : 'expires'} at ${expiresAt}`;
}
