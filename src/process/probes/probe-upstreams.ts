/** Whether the endpoints of a configuration accept connections. */
import type { Logger } from 'pino';
import type { Path } from '../../config/load/mistakes.ts';
import type { Config, UpstreamConfig } from '../../config/schema/config-schema.ts';
import { upstreamOrigins } from '../../config/schema/upstream-schema.ts';
import { PRACTICE_URL } from '../../config/values/upstream-url.ts';
import type { ConnectProblem } from './probe-endpoint.ts';
import { probeEndpoint } from './probe-endpoint.ts';

export interface EndpointProbe {
  readonly upstream: string;
  /** Its origin. */
  readonly endpoint: string;
  /** Of its url in the configuration. */
  readonly path: Path;
  /** Why it accepts no connection; undefined if it does. */
  readonly problem: ConnectProblem | undefined;
}

/** Opens one connection to each endpoint, all at once, and sends no request. The practice upstream is left out. Never rejects. */
export function probeUpstreams({ upstreams }: Config): Promise<EndpointProbe[]> {
  const probes = Object.entries(upstreams).flatMap(([upstream, settings]) =>
    upstreamOrigins(settings)
      .filter((endpoint) => endpoint !== PRACTICE_URL)
      .map(async (endpoint, i) => ({
        upstream,
        endpoint,
        path: ['upstreams', upstream, ...(settings.urls === undefined ? ['url'] : ['urls', i])],
        problem: await findProblem(endpoint, settings),
      })),
  );
  return Promise.all(probes);
}

/** One warning for each endpoint that accepts no connection. Affects no request, and ejects no endpoint. */
export async function logUnreachableEndpoints(config: Config, logger: Logger): Promise<void> {
  for (const { upstream, endpoint, problem } of await probeUpstreams(config)) {
    if (problem !== undefined) logger.warn({ upstream, endpoint, problem: problem.text }, UNREACHABLE);
  }
}

const UNREACHABLE = 'upstream unreachable at the start: no connection to this endpoint could be opened';

async function findProblem(
  endpoint: string,
  { connectTimeout, tls, http2 }: UpstreamConfig,
): Promise<ConnectProblem | undefined> {
  try {
    return await probeEndpoint(endpoint, { connectTimeout, tls, http2 });
  } catch (error) {
    // A certificate file that cannot be read.
    return { code: '', text: error instanceof Error ? error.message : String(error) };
  }
}
