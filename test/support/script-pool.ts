/** The scripts on a real Redis, told what time it is. */
import type { Redis } from 'ioredis';
import type { RateSettings } from '../../src/core/rate/rate-state.ts';
import type { Answer, Call } from '../../src/sharing/replicas/replica-protocol.ts';
import { packCall, packSettings, readAnswer } from '../../src/sharing/redis/lease-codec.ts';
import type { Scripts } from '../../src/sharing/redis/lua-scripts.ts';
import { readScripts } from '../../src/sharing/redis/lua-scripts.ts';

/** A call as a pool takes it. */
export interface Told {
  readonly settings: RateSettings;
  readonly call: Call;
  /** Microseconds, as Redis tells its time. */
  readonly time: number;
}

/** Where news is published. */
export const NEWS = 'news';

/** What a script takes Redis' time in microseconds to be, in milliseconds. */
export function millis(time: number): number {
  return 1000 * Math.floor(time / 1e6) + (time % 1e6) / 1000;
}

export interface ScriptPool {
  readonly redis: Redis;
  /** The keys of a limit, in their order. */
  readonly keys: (limit: string) => readonly string[];
  /** Calls about one limit, one after the other. @throws what a script throws */
  readonly play: (limit: string, calls: readonly Told[]) => Promise<Answer[]>;
}

export async function openScriptPool(redis: Redis): Promise<ScriptPool> {
  const told = toldTheTime(readScripts());
  const loaded = {
    lease: String(await redis.script('LOAD', told.lease)),
    report: String(await redis.script('LOAD', told.report)),
  };
  const keys = (limit: string): string[] => [1, 2, 3, 4, 5].map((key) => `{${limit}}${key}`);
  return {
    redis,
    keys,
    play: async (limit, calls) => {
      const pipeline = redis.pipeline();
      for (const { settings, call, time } of calls) {
        const script = call.want > 0 || call.clients.length > 0 ? loaded.lease : loaded.report;
        const clock = [Math.floor(time / 1e6), time % 1e6];
        const args = [packCall(call), call.holder, packSettings(settings), NEWS, limit, ...call.clients];
        pipeline.callBuffer('EVALSHA', script, 7, ...keys(limit), ...clock, ...args);
      }
      const replies = (await pipeline.exec()) ?? [];
      return replies.map(([error, reply]) => {
        if (error !== null) throw error;
        if (!(reply instanceof Buffer)) throw new TypeError('a script answers with a string');
        return readAnswer(reply);
      });
    },
  };
}

/** The time is two more keys; and what is kept does not expire while a test stands still. */
function toldTheTime({ lease, report }: Scripts): Pick<Scripts, 'lease' | 'report'> {
  const change = (script: string): string =>
    replaceOnce(replaceOnce(script, /redis\.call\('TIME'\)/g, '{KEYS[6], KEYS[7]}'), /\b3 \* WAITS_FOR\b/g, '3600000');
  return { lease: change(lease), report: replaceOnce(report, /redis\.call\('TIME'\)/g, '{KEYS[6], KEYS[7]}') };
}

function replaceOnce(text: string, pattern: RegExp, by: string): string {
  const found = text.match(pattern)?.length;
  if (found !== 1) throw new Error(`${String(pattern)} is in the script ${found ?? 0} times`);
  return text.replace(pattern, by);
}
