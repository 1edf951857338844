import { z } from 'zod';

/** A CPU profile of the DevTools protocol, with the fields used here. */
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

/** The parts of a request's cost, by the file of a frame. The first match counts. */
const PARTS: readonly (readonly [string, RegExp])[] = [
  ['the log line', /src\/telemetry\/log\/|node_modules\/pino/],
  ['metrics', /src\/telemetry\//],
  ['the exchange', /src\/core\/exchange\//],
  ['the limiter: pacing, learning, sharing, retries', /src\/(?:core|store|sharing)\//],
  ['headers, both ways', /src\/http\/headers\//],
  [
    'validation and overload',
    /src\/http\/(?:overload\/|request\/validate-request|server\/pipelines|upstream\/response-defect)/,
  ],
  ['client identity and routing', /src\/http\/request\/(?:client-|match-|glob|route|proxy)|node_modules\/ipaddr/],
  ['connections and endpoints', /src\/http\/upstream\//],
  ['the rest of the proxy', /src\//],
  ['Fastify and @fastify/http-proxy', /node_modules\/(?:fastify|@fastify|find-my-way|avvio)/],
  ['undici', /node_modules\/undici|wasm/],
  ['node:http, towards clients', /node:_http/],
  ['sockets and streams', /node:(?:net|internal\/stream)/],
  ['the rest of Node', /node:/],
];

/** Frames that are not functions. */
const OWN: ReadonlyMap<string, string> = new Map([
  ['(garbage collector)', 'garbage collection'],
  ['(program)', 'native code beside them'],
]);

/** Returns the microseconds of each part. System frames count for their caller. */
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
    return 'the rest of Node';
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
