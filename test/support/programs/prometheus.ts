/**
 * A real Prometheus on a free port, which scrapes its jobs every second. It knows the address of each job from its start, because it
 * takes up to ten seconds to notice a new one. A job without a process is down.
 *
 *     const prometheus = await startPrometheus(['gateway']);
 *     prometheus.watch('gateway', gate.adminUrl);
 *     expect(await prometheus.unmet('gateway', ['requests_total{outcome="forwarded"} == 1'])).toEqual([]);
 */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { findProgram } from '../../setup/find-program.ts';
import { atEnd } from '../at-end.ts';
import { freeUrl } from '../upstreams/http-upstream.ts';
import { pause } from '../pause.ts';
import { eventually } from '../proxy/tidegate.ts';
import { ScrapePort } from './scrape-port.ts';

/** Milliseconds. On a busy machine a scrape may be seconds late. */
const TIMEOUT = 30_000;
/** Milliseconds between two looks at what changes with each scrape. Each takes processor time here and in Prometheus. */
const LOOK_EVERY = 250;

const apiResponse = z.object({ status: z.literal('success'), data: z.unknown() });
const labels = z.record(z.string(), z.string());
const vector = z.object({
  result: z.array(z.object({ metric: labels, value: z.tuple([z.number(), z.string()]) })),
});
const matrix = z.object({ result: z.array(z.object({ values: z.array(z.tuple([z.number(), z.string()])) })) });
const names = z.array(z.string());
const rules = z.object({
  groups: z.array(z.object({ rules: z.array(z.object({ name: z.string(), health: z.string() })) })),
});
const exemplars = z.array(
  z.object({
    seriesLabels: labels,
    exemplars: z.array(z.object({ labels, value: z.string(), timestamp: z.number() })),
  }),
);

export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export type Exemplars = z.infer<typeof exemplars>;

export class Prometheus {
  readonly url: string;
  readonly #folder: string;
  readonly #child: ChildProcess;
  readonly #ports: ReadonlyMap<string, ScrapePort>;

  constructor(url: string, folder: string, child: ChildProcess, ports: ReadonlyMap<string, ScrapePort>) {
    this.url = url;
    this.#folder = folder;
    this.#child = child;
    this.#ports = ports;
  }

  /** Scrapes `/metrics` of this URL as `job` until the test ends. */
  watch(job: string, url: string | undefined): void {
    if (url === undefined) throw new Error('nothing to scrape: no admin port');
    const port = this.#ports.get(job);
    if (port === undefined) throw new Error(`Prometheus was started without the job ${job}`);
    port.forwardTo(url);
    atEnd(() => port.forwardTo(undefined));
  }

  /** Looks four times a second until a condition holds. Fails with the last value. */
  eventually<T>(read: () => Promise<T>, holds: (seen: T) => boolean): Promise<T> {
    return eventually(read, holds, TIMEOUT, LOOK_EVERY);
  }

  /** Evaluates an instant query now. */
  async query(expression: string): Promise<Sample[]> {
    const { result } = vector.parse(await this.ask('query', { query: expression }));
    return result.map(({ metric, value: [, value] }) => ({ labels: metric, value: Number(value) }));
  }

  /** Returns all values of the last minute in all series, as a panel would draw them. */
  async draw(expression: string): Promise<number[]> {
    const end = Date.now() / 1000;
    const range = { query: expression, start: String(end - 60), end: String(end), step: '1' };
    const { result } = matrix.parse(await this.ask('query_range', range));
    return result.flatMap(({ values }) => values.map(([, value]) => Number(value)));
  }

  /** Returns the values of a label of a metric. */
  async labelValues(metric: string, label: string): Promise<string[]> {
    return names.parse(await this.ask(`label/${label}/values`, { 'match[]': metric }));
  }

  /** Returns the health of each rule at its last evaluation: `ok`, `err` or `unknown`. */
  async rules(): Promise<{ readonly name: string; readonly health: string }[]> {
    return rules.parse(await this.ask('rules')).groups.flatMap((group) => group.rules);
  }

  /** Returns the exemplars of a metric within the last minute. */
  async exemplars(expression: string): Promise<Exemplars> {
    const end = Date.now() / 1000 + 1;
    return exemplars.parse(
      await this.ask('query_exemplars', { query: expression, start: String(end - 60), end: String(end) }),
    );
  }

  /**
   * Returns the statements that were true at no scrape, with their current values. Resolves as soon as all were true.
   * @param statements of PromQL, each of one of Tidegate's metrics without its prefix: `queue_depth{upstream="api"} == 3`
   */
  async unmet(job: string, statements: readonly string[], within = TIMEOUT): Promise<string[]> {
    const until = performance.now() + within;
    let open = statements.map((statement) => addressed(job, statement));
    for (;;) {
      const isTrue = await this.#areTrue(open);
      open = open.filter((_, i) => !isTrue.has(i));
      if (open.length === 0 || performance.now() > until) break;
      await pause(LOOK_EVERY);
    }
    const seen = await Promise.all(open.map((statement) => this.query(seriesOf(statement))));
    return open.map((statement, i) => `${statement}; it is ${seen[i]?.map(({ value }) => value).join() ?? ''}`);
  }

  /** Evaluates all at once: a query for each would take most of the processor time of a test. @returns the indexes of true ones */
  async #areTrue(statements: readonly string[]): Promise<Set<number>> {
    const labelled = statements.map((statement, i) => `label_replace(${statement}, "statement", "${i}", "", "")`);
    const samples = await this.query(labelled.join(' or '));
    return new Set(samples.map(({ labels: { statement } }) => Number(statement)));
  }

  async ask(what: string, parameters: Readonly<Record<string, string>> = {}): Promise<unknown> {
    const answer = await fetch(`${this.url}/api/v1/${what}?${new URLSearchParams(parameters).toString()}`);
    const body: unknown = await answer.json();
    const parsed = apiResponse.safeParse(body);
    if (!parsed.success) throw new Error(`${what} ${JSON.stringify(parameters)}: ${JSON.stringify(body)}`);
    return parsed.data.data;
  }

  async close(): Promise<void> {
    if (this.#child.exitCode === null) {
      const ended = once(this.#child, 'exit');
      this.#child.kill('SIGKILL');
      await ended;
    }
    for (const port of this.#ports.values()) port.close();
    rmSync(this.#folder, { recursive: true });
  }
}

/**
 * Starts Prometheus. Resolves when it responds. The caller must close it.
 * @param jobs the names that `watch` may use
 * @param ruleFiles absolute
 */
export async function startPrometheus(jobs: readonly string[], ruleFiles: readonly string[] = []): Promise<Prometheus> {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-prometheus-'));
  const ports = new Map<string, ScrapePort>();
  for (const job of jobs) ports.set(job, await ScrapePort.open());
  const config = {
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
    rule_files: ruleFiles,
    scrape_configs: Array.from(ports, ([job, { address }]) => ({
      job_name: job,
      static_configs: [{ targets: [address] }],
    })),
  };
  // JSON is YAML.
  writeFileSync(join(folder, 'prometheus.yml'), JSON.stringify(config));
  const url = await freeUrl();
  const program = findProgram('prometheus');
  if (program === undefined) throw new Error('prometheus is not installed: node test/setup/programs.ts tests');
  const child = spawn(
    program,
    [
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=${new URL(url).host}`,
      '--enable-feature=exemplar-storage',
      '--log.level=warn',
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let complaint = '';
  child.stderr.on('data', (chunk: Buffer) => (complaint += chunk.toString()));
  const prometheus = new Prometheus(url, folder, child, ports);
  await eventually(
    async () => {
      if (child.exitCode !== null) throw new Error(`it ended: ${complaint}`);
      const ready = await fetch(`${url}/-/ready`).catch(() => undefined);
      return ready?.status;
    },
    (status) => status === 200,
    TIMEOUT,
  );
  return prometheus;
}

const STATEMENT = /^(\w+)(?:\{(.*)\})?( .*)?$/;

function addressed(job: string, statement: string): string {
  const [, name = '', matchers, comparison = ''] = STATEMENT.exec(statement) ?? [];
  return `tidegate_${name}{job="${job}"${matchers === undefined ? '' : `,${matchers}`}}${comparison}`;
}

/** Returns the series of a statement, without the comparison. */
function seriesOf(statement: string): string {
  return statement.slice(0, statement.lastIndexOf('}') + 1);
}
