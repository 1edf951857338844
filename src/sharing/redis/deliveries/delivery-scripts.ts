/**
 * The Lua scripts of deliveries, each atomic. KEYS[1] is the key of the counters, the prefix of all other names; then the keys of the
 * script. All of them are in one slot of a cluster, because one script changes a delivery, its order and the counters.
 *
 * Keys: `of:ID` is a delivery with its sealed message. `in:STATE:ROUTE` has the ids of a state, `open` before the end. `due:ROUTE` has
 * those that wait, by the time when they are due. `claimed` has those that are being sent, by the end of the lease. `order:DIGEST` has
 * those with one order key that have not ended, by number of acceptance; all but one of them are blocked. `over:STATE` has those that have
 * ended, by the time when they are removed. `ages` has those that have not ended, by the time since when they wait. `events` and
 * `event-ends` have the ids of events.
 *
 * There are two clocks. Times of deliveries are on the wall clock of the replica that passes them, as in every other store: they are
 * compared with schedules of seconds to days, so a difference of the replicas' clocks delays or advances an attempt by as much. Leases
 * are on the clock of Redis: a replica whose own clock is wrong must not claim a delivery that another one is sending.
 *
 * While memory is full, Redis refuses the first command of a script that may take memory, and none after one that changed something. So
 * an addition begins with such a command, and a script that frees or sends deliveries with another one.
 */
import type { Millis } from '../../../core/scalars.ts';
import { DELIVERY_FIELDS } from './delivery-fields.ts';
import { ADD, ALLOW_FULL, DELIVERY_LEASE, FINISH, PRELUDE, quote, RECLAIM, REMOVE } from './delivery-script-parts.ts';

/** Of messages that are taken at a time, about. */
const MAX_TAKEN_BYTES = 8 * 1024 * 1024;
/** The first arguments of a change: those of its callback follow. */
const CHANGE_ARGUMENTS = 9;
/** Before a delivery is looked for again whose key is missing: while a slot of a cluster moves, it may be at the other master. */
const MISSING: Millis = 60_000;

/** KEYS: the delivery. ARGV: what `add` reads. Returns what `add` returns. */
export const ADD_DELIVERY = `${PRELUDE}${REMOVE}${ADD}
return add(0)
`;

/**
 * KEYS: those due of the route. ARGV: the present time, how many, this replica. Returns what was claimed (id, claim, message and fields
 * of each), and when the next one is due, or an empty string. A claim is never used again, also after Redis has lost its latest data.
 */
export const TAKE = `${PRELUDE}${RECLAIM}
reclaim()
local place, limit = KEYS[2], tonumber(ARGV[2])
local taken, bytes = {}, 0
local ids = limit > 0 and redis.call('ZRANGEBYSCORE', place, '-inf', ARGV[1], 'LIMIT', 0, limit) or {}
for _, id in ipairs(ids) do
  if bytes > ${MAX_TAKEN_BYTES} then break end
  redis.call('ZREM', place, id)
  local size = redis.call('HGET', of(id), 'size')
  if size then
    local claim = redis.call('HINCRBY', counters, 'claims', 1) .. ' ' .. ARGV[3]
    redis.call('HSET', of(id), 'claim', claim, 'since', ARGV[1])
    redis.call('ZADD', claimed, text(now + ${DELIVERY_LEASE}), id)
    taken[#taken + 1] = {id, claim, redis.call('HGET', of(id), 'message'), redis.call('HMGET', of(id), ${quote(DELIVERY_FIELDS)})}
    bytes = bytes + size
  else
    redis.call('ZADD', place, text(tonumber(ARGV[1]) + ${MISSING}), id)
  end
end
return {taken, redis.call('ZRANGE', place, 0, 0, 'WITHSCORES')[2] or ''}
`;

/**
 * KEYS: the delivery. ARGV: id, claim, the end (empty: it is postponed), when it ended or is due, until when it is kept, the attempt
 * (empty: none), when that began, `1` if it counts, the result (empty: none), then what `add` reads of the callback, if there is one. Returns
 * `lost` if another replica has claimed it since, or the change is stored already; else `stored`, and what `add` returns of the callback.
 */
export const CHANGE = `${PRELUDE}${FINISH}${REMOVE}${ADD}
local id, delivery = ARGV[1], KEYS[2]
local its = redis.call('HMGET', delivery, 'claim', 'route')
if its[1] ~= ARGV[2] then return {'lost'} end
redis.call('ZREM', claimed, id)
redis.call('HDEL', delivery, 'claim', 'since')
if ARGV[6] ~= '' then
  redis.call('HSET', delivery, 'attempt', ARGV[6])
  if ARGV[8] == '1' then
    redis.call('HINCRBY', delivery, 'attempts', 1)
    redis.call('HSETNX', delivery, 'startedAt', ARGV[7])
  end
end
if ARGV[3] == '' then
  redis.call('HSET', delivery, 'until', ARGV[4])
  redis.call('ZADD', due(its[2]), ARGV[4], id)
else
  finish(id, ARGV[3], ARGV[4], ARGV[5], ARGV[9])
end
return {'stored', ARGV[10] and add(${CHANGE_ARGUMENTS}) or false}
`;

/** ARGV: ids and claims in turn. Renews those that are still this replica's. */
export const RENEW = `${PRELUDE}${ALLOW_FULL}
for i = 1, #ARGV, 2 do
  if redis.call('HGET', of(ARGV[i]), 'claim') == ARGV[i + 1] then
    redis.call('ZADD', claimed, 'XX', text(now + ${DELIVERY_LEASE}), ARGV[i])
  end
end
return 'stored'
`;
