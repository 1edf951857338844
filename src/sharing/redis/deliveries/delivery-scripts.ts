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
import {
  DELIVERY_LEASE,
  EVICTED_STATES,
  FINISH,
  LASTING_STATES,
  MAX_REMOVED,
  PRELUDE,
  quote,
  RECLAIM,
  REMOVE,
  STORED_STATES,
} from './delivery-script-parts.ts';

/** Of messages that are taken at a time, about. */
const MAX_TAKEN_BYTES = 8 * 1024 * 1024;
/** Before a delivery is looked for again whose key is missing: while a slot of a cluster moves, it may be at the other master. */
const MISSING: Millis = 60_000;

/**
 * KEYS: the delivery. ARGV: id, route, digests of the event and of the order key (empty: none), when the event is forgotten, size, the
 * maximum of deliveries, of bytes and of events, the present time, when it was accepted, then names and values of the other fields.
 * Returns `stored` and how many events were forgotten because there are too many; `duplicate` and the id; or `full` and by what.
 */
export const ADD = `${PRELUDE}${REMOVE}
local id, route, event, order, size, accepted = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[6]), ARGV[11]
local delivery = KEYS[2]
if redis.call('EXISTS', delivery) == 1 then return {'duplicate', id} end
if event ~= '' then
  local ends = redis.call('ZSCORE', event_ends, event)
  local earlier = ends and tonumber(ends) > tonumber(ARGV[10]) and redis.call('HGET', events, event)
  if earlier then return {'duplicate', earlier} end
end
local function full_by(states)
  local sum, bytes = 0, 0
  for _, state in ipairs(states) do
    sum = sum + figure('count:' .. state)
    bytes = bytes + figure('bytes:' .. state)
  end
  if sum >= tonumber(ARGV[7]) then return 'count' end
  if bytes + size > tonumber(ARGV[8]) then return 'bytes' end
end
local full = full_by({${quote(LASTING_STATES)}})
if full then return {'full', full} end
local number = redis.call('HINCRBY', counters, 'number', 1)
for evicted = 0, ${MAX_REMOVED} do
  full = full_by({${quote(STORED_STATES)}})
  if not full then break end
  local state, oldest
  for _, each in ipairs({${quote(EVICTED_STATES)}}) do
    if not oldest then state, oldest = each, redis.call('ZRANGE', over(each), 0, 0)[1] end
  end
  if not oldest or evicted == ${MAX_REMOVED} then return {'full', full} end
  remove(oldest, state)
end
redis.call('HSET', delivery, 'route', route, 'size', ARGV[6], 'acceptedAt', accepted, 'until', accepted, 'state', 'open', 'attempts', '0',
  'number', number, unpack(ARGV, 12))
redis.call('ZADD', listed('open', route), 0, id)
redis.call('ZADD', ages, accepted, id)
redis.call('SADD', routes, route)
count('open', 1, size)
local is_blocked = false
if order ~= '' then
  is_blocked = redis.call('ZCARD', base .. 'order:' .. order) > 0
  redis.call('ZADD', base .. 'order:' .. order, number, id)
  redis.call('HSET', delivery, 'order', order)
end
if is_blocked then redis.call('HSET', delivery, 'blocked', '1') else redis.call('ZADD', due(route), accepted, id) end
local forgotten = 0
if event ~= '' then
  redis.call('HSET', events, event, id)
  redis.call('ZADD', event_ends, ARGV[5], event)
  if redis.call('ZCARD', event_ends) > tonumber(ARGV[9]) then
    redis.call('HDEL', events, redis.call('ZPOPMIN', event_ends)[1])
    forgotten = 1
  end
end
return {'stored', text(forgotten)}
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
 * (empty: none), when that began, `1` if it counts, the result (empty: none). Returns `lost` if another replica has claimed it since, or the
 * change is stored already.
 */
export const CHANGE = `${PRELUDE}${FINISH}
local id, delivery = ARGV[1], KEYS[2]
local its = redis.call('HMGET', delivery, 'claim', 'route')
if its[1] ~= ARGV[2] then return 'lost' end
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
return 'stored'
`;

/** ARGV: ids and claims in turn. Renews those that are still this replica's. */
export const RENEW = `${PRELUDE}
for i = 1, #ARGV, 2 do
  if redis.call('HGET', of(ARGV[i]), 'claim') == ARGV[i + 1] then
    redis.call('ZADD', claimed, 'XX', text(now + ${DELIVERY_LEASE}), ARGV[i])
  end
end
return 'stored'
`;
