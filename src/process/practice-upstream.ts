import type { Config, PracticeConfig } from '../config/schema/config-schema.ts';
import { PRACTICE_URL } from '../config/values/upstream-url.ts';
import type { Practice, PracticeOptions } from '../simulator/practice/practice-server.ts';

/** The practice upstream, where an upstream has `url: practice`. */
export async function openPractice(config: Config): Promise<Practice | undefined> {
  if (!Object.values(config.upstreams).some(({ url }) => url === PRACTICE_URL)) return undefined;
  const { startPractice } = await import('../simulator/practice/practice-server.ts'); // most play none
  return startPractice(practiceSpec(config.practice));
}

function practiceSpec(practice: PracticeConfig | undefined): PracticeOptions {
  if (practice === undefined) return { limit: { kind: 'token-bucket', rate: 20, burst: 10 } };
  const { limit, latency, hints, seed } = practice;
  return { limit, latency: { kind: 'constant', mean: latency }, hints, seed };
}

/** The urls of upstreams that we play ourselves, by name. @param own where */
export function ownUrls(config: Config, own: string | undefined): ReadonlyMap<string, string> {
  const urls = new Map<string, string>();
  for (const [name, { url }] of Object.entries(config.upstreams)) {
    if (url === PRACTICE_URL && own !== undefined) urls.set(name, own);
  }
  return urls;
}
