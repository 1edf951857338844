import type { Heard } from './call.ts';
import type { LogLine } from '../support/probed.ts';

interface Count {
  sent: number;
  /** Statuses, with `cut` where the body was. */
  readonly heard: Map<string, number>;
  /** Left, so that nobody knows what they would have heard. */
  left: number;
  /** Told that the proxy itself had too much to do. It writes no line of these: a line for each would add to it. */
  shed: number;
  /** Lines of the proxy's log. */
  readonly logged: Map<string, number>;
}

interface Totals {
  readonly sent: number;
  readonly left: number;
  readonly shed: number;
  readonly heard: ReadonlyMap<string, number>;
}

/** What clients asked and heard, by path, and what the proxy says of the same paths. */
export class Account {
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

  /** Answers that clients dropped as their connections were being ended, though they may have been whole. */
  get dropped(): number {
    return this.#dropped.length;
  }

  ask(path: string): void {
    this.#of(path).sent += 1;
  }

  hear(path: string, heard: Heard): void {
    const count = this.#of(path);
    if (heard.kind === 'left') count.left += 1;
    else if (heard.kind === 'lost') this.faults.push(`a request of ${path} was lost: ${heard.why}`);
    else if (heard.kind === 'dropped') this.#dropped.push({ count, status: heard.status, id: heard.id });
    else if (isShed(heard)) count.shed += 1;
    else add(count.heard, `${heard.status}${heard.kind === 'cut' ? ' cut' : ''}`);
  }

  log(line: LogLine): void {
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
    const heard = new Map<string, number>();
    for (const count of this.#counts.values()) {
      sent += count.sent;
      left += count.left;
      shed += count.shed;
      for (const [what, times] of count.heard) add(heard, what, times);
    }
    return { sent, left, shed, heard };
  }

  /** Where both sides do not agree: exactly where clients stayed, and as far as they can know where they left. */
  *differences(): Generator<string> {
    // What they were, the log says.
    for (const { count, status, id } of this.#dropped.splice(0)) {
      if (this.#ids.has(id)) add(count.heard, `${status}${this.#cutIds.has(id) ? ' cut' : ''}`);
      else yield `${id} was answered with ${status}, and not logged`;
    }
    for (const [path, { sent, heard, left, shed, logged }] of this.#counts) {
      if (sent === 0) continue; // input that never became a request of a client
      const lines = total(logged);
      if (lines > sent - shed || lines < sent - shed - left) {
        yield `${path}: ${sent} sent, ${left} left, ${shed} shed, ${lines} logged`;
      }
      for (const what of new Set([...heard.keys(), ...logged.keys()])) {
        const [told, said] = [heard.get(what) ?? 0, logged.get(what) ?? 0];
        const agrees = left === 0 ? told === said : told <= said;
        if (!agrees) yield `${path}: ${what} was heard ${told} times, and logged ${said} times`;
      }
    }
  }

  #of(path: string): Count {
    let count = this.#counts.get(path);
    if (count === undefined) {
      count = { sent: 0, heard: new Map(), left: 0, shed: 0, logged: new Map() };
      this.#counts.set(path, count);
    }
    return count;
  }
}

function isShed(heard: Heard): boolean {
  return heard.kind === 'answered' && /details="?overloaded\b/.test(heard.header('proxy-status'));
}

function add(counts: Map<string, number>, what: string, times = 1): void {
  counts.set(what, (counts.get(what) ?? 0) + times);
}

function total(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((sum, times) => sum + times, 0);
}
