import { z } from 'zod';

/** As the DevTools protocol has it; what is not read here is left out. */
export const recorded = z.object({
  nodes: z.array(
    z.object({
      id: z.number(),
      callFrame: z.object({ functionName: z.string(), url: z.string() }),
      children: z.array(z.number()).optional(),
    }),
  ),
  samples: z.array(z.number()),
  timeDeltas: z.array(z.number()),
});
type Recorded = z.infer<typeof recorded>;

/** The parts of a request's cost, by the file that a frame is of. The first that fits is it. */
const PARTS: readonly (readonly [string, RegExp])[] = [
  ['the log’s line', /src\/observe\/(?:request-l|log)|node_modules\/pino/],
  ['metrics', /src\/observe\//],
  ['the limiter: pacing, learning, sharing, retries', /src\/(?:policy|state)\//],
  ['the script of a request', /src\/(?:exchange|drive)\.ts/],
  ['headers, both ways', /src\/proxy\/headers\.ts/],
  ['what a request may not be', /src\/proxy\/(?:inbound|pipelines|capacity|load-watch|flaw)\.ts/],
  [
    'whose it is, and where it goes',
    /src\/proxy\/(?:identity|client-hash|address|router|arrival)\.ts|node_modules\/ipaddr/,
  ],
  ['connections and endpoints', /src\/proxy\/(?:connection|endpoints|trip|name)/],
  ['the rest of the proxy', /src\//],
  ['Fastify and @fastify/http-proxy', /node_modules\/(?:fastify|@fastify|find-my-way|avvio)/],
  ['undici', /node_modules\/undici|wasm/],
  ['node:http, towards clients', /node:_http/],
  ['sockets and streams', /node:(?:net|internal\/stream)/],
  ['Node besides', /node:/],
];

/** What is no function of anybody’s. */
const OWN: ReadonlyMap<string, string> = new Map([
  ['(garbage collector)', 'garbage collection'],
  ['(program)', 'native code beside them'],
]);

/** Microseconds of each part that the profile saw; what the system does counts for who calls it. */
export function attribute(profile: Recorded): Map<string, number> {
  const parents = new Map<number, number>();
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  for (const { id, children = [] } of profile.nodes) for (const child of children) parents.set(child, id);
  const partOf = (leaf: number): string | undefined => {
    for (let id: number | undefined = leaf; id !== undefined; id = parents.get(id)) {
      const frame = nodes.get(id)?.callFrame;
      if (frame === undefined) continue;
      if (frame.functionName === '(idle)') return undefined;
      const own = OWN.get(frame.functionName);
      if (own !== undefined) return own;
      const found = PARTS.find(([, pattern]) => pattern.test(frame.url));
      if (found !== undefined) return found[0];
    }
    return 'Node besides';
  };
  const known = new Map<number, string | undefined>();
  const sums = new Map<string, number>();
  for (const [i, sample] of profile.samples.entries()) {
    if (!known.has(sample)) known.set(sample, partOf(sample));
    const part = known.get(sample);
    if (part !== undefined) sums.set(part, (sums.get(part) ?? 0) + (profile.timeDeltas[i] ?? 0));
  }
  return sums;
}
