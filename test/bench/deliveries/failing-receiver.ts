import { once } from 'node:events';
import { createServer } from 'node:http';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import type { Notification } from './notification.ts';

/** What a receiver has seen of one notification. */
interface Seen {
  /** The `webhook-id` of its attempts. */
  readonly ids: Set<string>;
  attempts: number;
  /** How often it was acknowledged: above 1, the receiver got a duplicate. */
  acknowledged: number;
}

export interface ReceiverFindings {
  readonly attempts: number;
  readonly acknowledged: number;
  /** Acknowledged more than once, always under the same id. */
  readonly duplicates: number;
  /** Sent under more than one id. */
  readonly renamed: number;
  /** Acknowledged after a later one with the same key. */
  readonly outOfOrder: number;
  readonly keys: number;
}

/** Answers half of all attempts with 500, and remembers what it has acknowledged. */
export class FailingReceiver {
  readonly #random = seededRandom(11);
  readonly #seen = new Map<string, Seen>();
  readonly #latest = new Map<string, number>();
  #acknowledged = 0;
  #outOfOrder = 0;
  readonly #server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const isTaken = this.#take(Buffer.concat(chunks).toString(), String(request.headers['webhook-id']));
      response.writeHead(isTaken ? 200 : 500).end();
    });
  });

  /** @returns its URL */
  async start(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    const address = this.#server.address();
    return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  /** Notifications that were acknowledged at least once. */
  get acknowledged(): number {
    return this.#acknowledged;
  }

  get findings(): ReceiverFindings {
    const all = [...this.#seen.values()];
    return {
      attempts: all.reduce((sum, { attempts }) => sum + attempts, 0),
      acknowledged: this.#acknowledged,
      duplicates: all.filter(({ acknowledged }) => acknowledged > 1).length,
      renamed: all.filter(({ ids }) => ids.size > 1).length,
      outOfOrder: this.#outOfOrder,
      keys: this.#latest.size,
    };
  }

  #take(body: string, webhookId: string): boolean {
    const { id, key, n } = JSON.parse(body) as Notification;
    const seen = this.#seen.get(id) ?? { ids: new Set(), attempts: 0, acknowledged: 0 };
    this.#seen.set(id, seen);
    seen.ids.add(webhookId);
    seen.attempts += 1;
    if (key !== undefined && n < (this.#latest.get(key) ?? -1)) this.#outOfOrder += 1;
    if (this.#random() < 0.5) return false;
    if (seen.acknowledged === 0) this.#acknowledged += 1;
    seen.acknowledged += 1;
    if (key !== undefined) this.#latest.set(key, Math.max(n, this.#latest.get(key) ?? -1));
    return true;
  }
}
