/** Runs the Lua script on a real Redis, with a clock set by the test. */
import type { Redis } from 'ioredis';
import type { RateSettings } from '../../../src/core/rate/rate-state.ts';
import type { LeaseResponse, LeaseRequest } from '../../../src/sharing/replicas/replica-protocol.ts';
import { encodeRequest, encodeSettings, decodeResponse } from '../../../src/sharing/redis/lease-codec.ts';
import { loadLuaScript } from '../../../src/sharing/redis/lua-script.ts';

/** A call of the script. */
export interface ScriptCall {
  readonly settings: RateSettings;
  readonly call: LeaseRequest;
  /** Time of Redis in microseconds. */
  readonly time: number;
}

/** The channel of published changes. */
export const CHANNEL = 'news';

/** Converts Redis time in microseconds to the milliseconds that the script uses. */
export function millis(time: number): number {
  return 1000 * Math.floor(time / 1e6) + (time % 1e6) / 1000;
}

export interface ScriptRunner {
  readonly redis: Redis;
  /** Returns the keys of a limit, in the script's order. */
  readonly keys: (limit: string) => readonly string[];
  /** Runs calls for one limit in sequence. @throws the error of the script */
  readonly run: (limit: string, calls: readonly ScriptCall[]) => Promise<LeaseResponse[]>;
}

export async function openScriptRunner(redis: Redis): Promise<ScriptRunner> {
  const sha = String(await redis.script('LOAD', takeTimeFromKeys(loadLuaScript().source)));
  const keys = (limit: string): string[] => [1, 2, 3, 4, 5, 6, 7].map((key) => `{${limit}}${key}`);
  return {
    redis,
    keys,
    run: async (limit, calls) => {
      const pipeline = redis.pipeline();
      for (const { settings, call, time } of calls) {
        const clock = [Math.floor(time / 1e6), time % 1e6];
        const args = [
          encodeRequest(call),
          call.replicaId,
          encodeSettings(settings, false),
          CHANNEL,
          limit,
          ...call.waitingGroups,
          ...call.returningGroups,
        ];
        pipeline.callBuffer('EVALSHA', sha, 9, ...keys(limit), ...clock, ...args);
      }
      const replies = (await pipeline.exec()) ?? [];
      return replies.map(([error, reply]) => {
        if (error !== null) throw error;
        if (!(reply instanceof Buffer)) throw new TypeError('a script answers with a string');
        return decodeResponse(reply);
      });
    },
  };
}

/** Makes the script read the time from two more keys, and disables expiry of the windows of groups, which uses the real clock. */
function takeTimeFromKeys(script: string): string {
  const timed = replaceOnce(script, /redis\.call\('TIME'\)/g, '{KEYS[8], KEYS[9]}');
  return replaceOnce(timed, /\b3 \* length\b/g, '3600000');
}

function replaceOnce(text: string, pattern: RegExp, by: string): string {
  const found = text.match(pattern)?.length;
  if (found !== 1) throw new Error(`${String(pattern)} is in the script ${found ?? 0} times`);
  return text.replace(pattern, by);
}
