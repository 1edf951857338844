import type { Millis } from '../../src/core/scalars.ts';
import type { LogLine } from '../support/proxy/probed-process.ts';
import type { ProxyLogEntry } from '../support/oracle/client-knowledge.ts';

const TRACE_ID = /^[\da-f]{32}$/;

interface LoggedRequest extends ProxyLogEntry {
  /** On the clock of `performance.now`. */
  readonly loggedAt: Millis;
  /** For messages. */
  readonly line: Readonly<Record<string, unknown>>;
}

/** The log lines of requests, by the number of the request. */
export class ProxyLog {
  readonly #entries = new Map<number, LoggedRequest>();
  readonly problems: string[] = [];

  onLine(line: LogLine): void {
    if (line['level'] === 'fatal' || line['err'] !== undefined) this.problems.push(JSON.stringify(line));
    const { msg, trace_id: traceId, status, attempts, cut, outcome, reason, ms, time } = line;
    if (msg !== 'request' || typeof traceId !== 'string' || !TRACE_ID.test(traceId)) return;
    const isComplete = cut !== true && outcome !== 'client_gone' && outcome !== 'unknown';
    this.#entries.set(Number.parseInt(traceId, 16), {
      status: Number(status),
      attempts: Number(attempts),
      isComplete,
      loggedAt: performance.now(),
      line: { time, outcome, reason, status, attempts, cut, ms },
    });
  }

  entry(number: number): LoggedRequest | undefined {
    return this.#entries.get(number);
  }

  drop(number: number): void {
    this.#entries.delete(number);
  }
}
