import type { RuleFinding } from './rule-finding.ts';
import { mistakeAt } from './rule-finding.ts';
import type { PartialUpstream } from '../load/partial-config.ts';
import type { Path } from '../load/mistakes.ts';
import type { Provider } from '../presets/providers.ts';
import { providerOfHost } from '../presets/providers.ts';
import { isInternalHost, PRACTICE_URL, unixSocketPath } from '../values/upstream-url.ts';

/** The scheme of each url is one that its host probably speaks. @param path of the upstream */
export function* checkUrlSchemes(
  path: Path,
  { url, urls = [], provider }: Pick<PartialUpstream, 'url' | 'urls' | 'provider'>,
): Generator<RuleFinding> {
  if (url !== undefined) yield* checkUrlScheme([...path, 'url'], url, provider);
  for (const [i, one] of urls.entries()) yield* checkUrlScheme([...path, 'urls', i], one, provider);
}

function* checkUrlScheme(path: Path, origin: string, provider: Provider | undefined): Generator<RuleFinding> {
  if (origin === PRACTICE_URL || unixSocketPath(origin) !== undefined) return;
  const { protocol, hostname, port } = new URL(origin);
  if (protocol === 'https:') {
    if (port === '80') {
      yield warning(path, 'port 80 is the port of plain http: TLS probably fails there', `http://${hostname}`);
    }
    return;
  }
  const owner = providerOfHost(hostname);
  const secure = `https://${hostname}${port === '' || port === '443' ? '' : `:${port}`}`;
  if (owner !== undefined) yield mistakeAt(path, `the API of ${owner} accepts only https`, `https://${hostname}`);
  else if (port === '443') {
    yield warning(path, 'port 443 is the port of https: plain http probably fails there', secure);
  } else if (provider !== undefined && !isInternalHost(hostname)) {
    const message = `the API of ${provider} accepts only https, and http sends its keys in plain text`;
    yield warning(path, message, secure);
  }
}

function warning(path: Path, message: string, suggestion: string): RuleFinding {
  return { level: 'warning', path, at: 'value', message, suggestion };
}
