/** A Fastify application with a proxy mounted in it, on a free port. */
import type { FastifyInstance, FastifyServerOptions } from 'fastify';
import Fastify from 'fastify';
import type { Mounted, TidegateOptions } from '../../../src/library/index.ts';
import { tidegate } from '../../../src/library/index.ts';
import { atEnd } from '../at-end.ts';

export interface Application {
  readonly app: FastifyInstance;
  readonly url: string;
  readonly mounted: Mounted;
  /** Lines of the application's log, parsed. */
  readonly log: () => Record<string, unknown>[];
  /** The value of a series; 0 when absent. */
  readonly metric: (series: string) => Promise<number>;
}

export interface ApplicationOptions {
  readonly prefix?: string;
  readonly server?: FastifyServerOptions;
  /** Extends the application. */
  readonly extend?: (app: FastifyInstance) => void;
}

/** Listens until the test ends. */
export async function startApplication(
  options: TidegateOptions,
  { prefix = '/pay', server = {}, extend }: ApplicationOptions = {},
): Promise<Application> {
  const lines: string[] = [];
  const stream = { write: (line: string) => void lines.push(line) };
  const app = Fastify({ logger: { level: 'debug', stream }, ...server });
  atEnd(() => app.close());
  extend?.(app);
  const [mounted] = await new Promise<Mounted[]>((resolve, reject) => {
    const seen: Mounted[] = [];
    void app.register(tidegate, { ...options, prefix, onMounted: (one) => void seen.push(one) });
    app.ready((error) => (error === null || error === undefined ? resolve(seen) : reject(error)));
  });
  const url = await app.listen({ port: 0, host: '127.0.0.1' });
  if (mounted === undefined) throw new Error('nothing was mounted');
  return {
    app,
    url,
    mounted,
    log: () => lines.map((line) => JSON.parse(line) as Record<string, unknown>),
    metric: async (series) => {
      const line = (await mounted.metrics()).split('\n').find((each) => each.startsWith(`${series} `));
      return line === undefined ? 0 : Number(line.slice(series.length + 1));
    },
  };
}
