/** What operators and metrics read and change in Redis, each in one step. See delivery-scripts.ts. */
import { DELIVERY_FIELDS } from './delivery-fields.ts';
import { COUNT, REMOVE } from './delivery-room-parts.ts';
import { FINISH, MAX_REMOVED, PRELUDE, quote, RECLAIM, STORED_STATES } from './delivery-script-parts.ts';
import { NEXT_DUE, WAIT } from './delivery-turn-parts.ts';

/** Ids of events that a step removes at most. */
const MAX_EVENTS_REMOVED = 500;
const OVER_STATES = STORED_STATES.filter((state) => state !== 'open');

/**
 * KEYS: the delivery. ARGV: id, the end, the present time, until when it is kept, why without an attempt (empty: an operator decided), and
 * the time since when it waits at least (empty: any).
 */
export const END_WAITING = `${PRELUDE}${COUNT}${WAIT}${FINISH}
local id, delivery = ARGV[1], KEYS[2]
local its = redis.call('HMGET', delivery, 'state', 'claim', 'route', 'owner', 'sender')
if its[1] ~= 'open' or its[2] then return 'refused' end
local since = redis.call('ZSCORE', ages, id)
if ARGV[6] ~= '' and (not since or tonumber(since) > tonumber(ARGV[6])) then return 'refused' end
stop_waiting(id, its[3], its[5] or its[4], its[4])
if ARGV[5] ~= '' then redis.call('HSET', delivery, 'attempt', ARGV[5]) end
finish(id, ARGV[2], ARGV[3], ARGV[4], '')
return 'stored'
`;

/** KEYS: the delivery. ARGV: id, the present time. */
export const RETRY = `${PRELUDE}${COUNT}${WAIT}
local id, delivery = ARGV[1], KEYS[2]
local its = redis.call('HMGET', delivery, 'state', 'claim', 'route', 'size', 'order', 'number', 'blocked', 'owner', 'sender')
local owner, sender = its[8], its[9] or its[8]
local result = redis.call('HSTRLEN', delivery, 'result')
local state, route, order, is_blocked = its[1], its[3], its[5] and base .. 'order:' .. its[5], its[7]
if not state or state == 'delivered' or its[2] then return 'refused' end
if state ~= 'open' then
  redis.call('HSET', delivery, 'state', 'open')
  redis.call('ZREM', over(state), id)
  redis.call('ZREM', listed(state, route), id)
  redis.call('ZADD', listed('open', route), 0, id)
  if evicted[state] then redis.call('ZREM', evictable(sender), id) end
  count(state, -1, its[4], sender)
  count('open', 1, its[4] - result, sender)
  redis.call('HSET', delivery, 'size', text(its[4] - result))
  redis.call('HDEL', delivery, 'result')
  is_blocked = order and redis.call('ZCARD', order) > 0
  if order then redis.call('ZADD', order, its[6], id) end
  if is_blocked then redis.call('HSET', delivery, 'blocked', '1') end
end
redis.call('HSET', delivery, 'until', ARGV[2], 'attempts', '0')
redis.call('ZADD', ages, ARGV[2], id)
redis.call('HDEL', delivery, 'startedAt')
if not is_blocked then wait(id, route, sender, owner, ARGV[2]) end
return 'stored'
`;

/**
 * ARGV: the present time, and since when those wait at least that have waited too long. Removes what is over. Returns figures: `1` if more
 * may be over, `1` if some are due, how many are being sent, when the oldest that is not over was accepted, the number of events, then
 * number and bytes of each state. Then id and fields of those that have waited too long.
 */
export const POLL = `${PRELUDE}${COUNT}${WAIT}${RECLAIM}${REMOVE}${NEXT_DUE}
reclaim()
local left = ${MAX_REMOVED}
for _, state in ipairs({${quote(OVER_STATES)}}) do
  local ids = left > 0 and redis.call('ZRANGEBYSCORE', over(state), '-inf', ARGV[1], 'LIMIT', 0, left) or {}
  for _, id in ipairs(ids) do remove(id, state) end
  left = left - #ids
end
local forgotten = redis.call('ZRANGEBYSCORE', event_ends, '-inf', ARGV[1], 'LIMIT', 0, ${MAX_EVENTS_REMOVED})
if #forgotten > 0 then
  redis.call('ZREM', event_ends, unpack(forgotten))
  redis.call('HDEL', events, unpack(forgotten))
end
local oldest, is_due = '', ''
for _, route in ipairs(redis.call('SMEMBERS', routes)) do
  local first = redis.call('ZRANGE', listed('open', route), 0, 0)[1]
  local accepted = first and redis.call('HGET', of(first), 'acceptedAt')
  if accepted and (oldest == '' or tonumber(accepted) < tonumber(oldest)) then oldest = accepted end
  local next_at = next_due(route)
  if next_at and next_at <= tonumber(ARGV[1]) then is_due = '1' end
end
local old = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', ages, '-inf', ARGV[2], 'LIMIT', 0, ${MAX_REMOVED} + redis.call('ZCARD', claimed))) do
  if #old < ${MAX_REMOVED} and not redis.call('ZSCORE', claimed, id) then
    old[#old + 1] = {id, redis.call('HMGET', of(id), ${quote(DELIVERY_FIELDS)})}
  end
end
local has_more = (left == 0 or #forgotten == ${MAX_EVENTS_REMOVED} or #old == ${MAX_REMOVED}) and '1' or ''
local reply = {has_more, is_due, text(redis.call('ZCARD', claimed)), oldest, text(redis.call('ZCARD', event_ends))}
for _, state in ipairs({${quote(STORED_STATES)}}) do
  reply[#reply + 1] = text(figure('count:' .. state))
  reply[#reply + 1] = text(figure('bytes:' .. state))
end
return {reply, old}
`;

/**
 * ARGV: how many, after which id (empty: from the first), `1` for the newest first, `1` for those that wait, `1` for those that are being
 * sent, other states, the route (empty: all). Returns id and fields of each, in the order of ids.
 */
export const LIST = `${PRELUDE}
local limit, after, newest, route = tonumber(ARGV[1]), ARGV[2], ARGV[3] == '1', ARGV[7]
local wanted = {waiting = ARGV[4] == '1', sending = ARGV[5] == '1'}
local candidates = {}
local function collect(key, most)
  local from = after ~= '' and '(' .. after
  local ids = newest and redis.call('ZREVRANGEBYLEX', key, from or '+', '-', 'LIMIT', 0, most)
    or redis.call('ZRANGEBYLEX', key, from or '-', '+', 'LIMIT', 0, most)
  for _, id in ipairs(ids) do candidates[#candidates + 1] = id end
end
local sending = wanted.waiting ~= wanted.sending and redis.call('ZRANGE', claimed, 0, -1) or {}
for _, each in ipairs(route == '' and redis.call('SMEMBERS', routes) or {route}) do
  if wanted.waiting then collect(listed('open', each), limit + #sending) end
  for state in string.gmatch(ARGV[6], '%S+') do
    wanted[state] = true
    collect(listed(state, each), limit)
  end
end
if not wanted.waiting then
  for _, id in ipairs(sending) do
    if after == '' or (newest and id < after) or (not newest and id > after) then candidates[#candidates + 1] = id end
  end
end
table.sort(candidates, newest and function(one, other) return one > other end or nil)
local found = {}
for _, id in ipairs(candidates) do
  if #found >= limit then break end
  local state, claim, its = unpack(redis.call('HMGET', of(id), 'state', 'claim', 'route'))
  local kind = state ~= 'open' and state or claim and 'sending' or 'waiting'
  if state and wanted[kind] and (route == '' or route == its) then
    found[#found + 1] = {id, redis.call('HMGET', of(id), ${quote(DELIVERY_FIELDS)})}
  end
end
return found
`;
