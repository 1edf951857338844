import type { Config, PracticeConfig } from '../config/schema/config-schema.ts';
import { PRACTICE_URL } from '../config/values/upstream-url.ts';
import type { PracticeServer, PracticeOptions } from '../simulator/practice/practice-server.ts';

/** Starts the practice upstream if an upstream has `url: practice`. */
export async function openPracticeUpstream(config: Config): Promise<PracticeServer | undefined> {
  if (!Object.values(config.upstreams).some(({ url }) => url === PRACTICE_URL)) return undefined;
  const { startPracticeServer } = await import('../simulator/practice/practice-server.ts'); // loaded only where it is used
  return startPracticeServer(practiceSpec(config.practice));
}

function practiceSpec(practice: PracticeConfig | undefined): PracticeOptions {
  if (practice === undefined) return { limit: { kind: 'token-bucket', rate: 20, burst: 10 } };
  const { limit, latency, hints, seed } = practice;
  return { limit, latency: { kind: 'constant', mean: latency }, hints, seed };
}

/** The URL of each upstream with `url: practice`, by name. @param practiceUrl of the practice upstream */
export function practiceUrls(config: Config, practiceUrl: string | undefined): ReadonlyMap<string, string> {
  const urls = new Map<string, string>();
  for (const [name, { url }] of Object.entries(config.upstreams)) {
    if (url === PRACTICE_URL && practiceUrl !== undefined) urls.set(name, practiceUrl);
  }
  return urls;
}
