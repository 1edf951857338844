import type { CallResult } from './call.ts';
import type { LogLine } from '../support/proxy/probed-process.ts';

interface Count {
  sent: number;
  /** Statuses, with `cut` where the body was. */
  readonly received: Map<string, number>;
  /** Aborted by the client: the result is unknown. */
  left: number;
  /** Rejected because the proxy is overloaded. The proxy logs none of these: a line for each would add to the load. */
  shed: number;
  /** Lines of the proxy's log. */
  readonly logged: Map<string, number>;
}

interface Totals {
  readonly sent: number;
  readonly left: number;
  readonly shed: number;
  readonly received: ReadonlyMap<string, number>;
}

/** Requests and results of the clients by path, and the proxy's log lines for the same paths. */
export class SoakCounts {
  readonly #counts = new Map<string, Count>();
  readonly #ids = new Set<string>();
  readonly #cutIds = new Set<string>();
  readonly #dropped: { readonly count: Count; readonly status: number; readonly id: string }[] = [];
  readonly faults: string[] = [];
  #lines = 0;

  /** Lines of requests so far. */
  get lines(): number {
    return this.#lines;
  }

  /** Responses that clients dropped when a connection ended, though they may have been complete. */
  get dropped(): number {
    return this.#dropped.length;
  }

  countSent(path: string): void {
    this.#of(path).sent += 1;
  }

  countResult(path: string, result: CallResult): void {
    const count = this.#of(path);
    if (result.kind === 'left') count.left += 1;
    else if (result.kind === 'lost') this.faults.push(`lost request: ${path}: ${result.why}`);
    else if (result.kind === 'dropped') this.#dropped.push({ count, status: result.status, id: result.id });
    else if (isShed(result)) count.shed += 1;
    else add(count.received, `${result.status}${result.kind === 'cut' ? ' cut' : ''}`);
  }

  countLogged(line: LogLine): void {
    this.#lines += 1;
    const id = String(line['id']);
    if (this.#ids.has(id)) this.faults.push(`${id} was logged twice`);
    this.#ids.add(id);
    if (line['cut'] === true) this.#cutIds.add(id);
    add(this.#of(String(line['path'])).logged, `${String(line['status'])}${line['cut'] === true ? ' cut' : ''}`);
  }

  /** All answers so far, by status. */
  totals(): Totals {
    let sent = 0;
    let left = 0;
    let shed = 0;
    const received = new Map<string, number>();
    for (const count of this.#counts.values()) {
      sent += count.sent;
      left += count.left;
      shed += count.shed;
      for (const [what, times] of count.received) add(received, what, times);
    }
    return { sent, left, shed, received };
  }

  /** Yields the differences between clients and log: exact where no client aborted, bounds where some did. */
  *differences(): Generator<string> {
    // The log says whether they were complete.
    for (const { count, status, id } of this.#dropped.splice(0)) {
      if (this.#ids.has(id)) add(count.received, `${status}${this.#cutIds.has(id) ? ' cut' : ''}`);
      else yield `${id}: answered with ${status}, not logged`;
    }
    for (const [path, { sent, received, left, shed, logged }] of this.#counts) {
      if (sent === 0) continue; // input that was not a client's request
      const lines = total(logged);
      if (lines > sent - shed || lines < sent - shed - left) {
        yield `${path}: ${sent} sent, ${left} left, ${shed} shed, ${lines} logged`;
      }
      for (const what of new Set([...received.keys(), ...logged.keys()])) {
        const [receivedCount, loggedCount] = [received.get(what) ?? 0, logged.get(what) ?? 0];
        const agrees = left === 0 ? receivedCount === loggedCount : receivedCount <= loggedCount;
        if (!agrees) yield `${path}: ${what}: received ${receivedCount} times, logged ${loggedCount} times`;
      }
    }
  }

  #of(path: string): Count {
    let count = this.#counts.get(path);
    if (count === undefined) {
      count = { sent: 0, received: new Map(), left: 0, shed: 0, logged: new Map() };
      this.#counts.set(path, count);
    }
    return count;
  }
}

function isShed(result: CallResult): boolean {
  return result.kind === 'answered' && /details="?overloaded\b/.test(result.header('proxy-status'));
}

function add(counts: Map<string, number>, what: string, times = 1): void {
  counts.set(what, (counts.get(what) ?? 0) + times);
}

function total(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((sum, times) => sum + times, 0);
}
