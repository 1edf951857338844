/** What several scripts about deliveries have in common. */
import type { Millis } from '../../../core/scalars.ts';

/** A replica that has not renewed its claims for this long has ended: they are due again. */
export const DELIVERY_LEASE: Millis = 15_000;
/** Without a call of any replica for this long, Redis was away: the replicas have had no chance to renew their claims. */
const AWAY: Millis = 5000;
/** Deliveries that a script removes, or makes due again, at most: a step is short. */
export const MAX_REMOVED = 100;

export const quote = (names: readonly string[]): string => names.map((name) => `'${name}'`).join(', ');

/** Those that are over without having failed are removed to make room, in this order. */
export const EVICTED_STATES = ['delivered', 'canceled'] as const;
/** Those that are not removed to make room. */
export const LASTING_STATES = ['open', 'dead', 'unknown'] as const;
export const STORED_STATES = [...LASTING_STATES, ...EVICTED_STATES] as const;
export type StoredState = (typeof STORED_STATES)[number];

export const PRELUDE = `
local counters = KEYS[1]
local base = string.sub(counters, 1, -#'counters' - 1)
local claimed, routes, ages = base .. 'claimed', base .. 'routes', base .. 'ages'
local events, event_ends = base .. 'events', base .. 'event-ends'
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function text(number) return string.format('%d', number) end
local function of(id) return base .. 'of:' .. id end
local function listed(state, route) return base .. 'in:' .. state .. ':' .. route end
local function over(state) return base .. 'over:' .. state end
local function figure(name) return tonumber(redis.call('HGET', counters, name) or '0') end
`;

/**
 * Removes nothing. While memory is full, Redis refuses each command that may take memory until a script has run one that changes data and
 * takes none. Without this, leases of attempts in progress would end, or those of a killed replica would not.
 */
export const ALLOW_FULL = `
redis.pcall('ZREM', claimed, '')`;

/** The reason of an attempt of a write whose end was not reported: see `mayHaveTakenEffect` in http/delivery/judge-write.ts. */
const LEASE_ENDED = 'unknown_lease_ended';

/** A write whose lease has ended may have been sent, and may still be sent by a replica that was suspended: it is marked as such. */
export const RECLAIM = `
local function reclaim()
  ${ALLOW_FULL.trim()}
  local known = redis.call('HMGET', counters, 'seen', 'grace')
  local seen, grace = tonumber(known[1] or '0'), tonumber(known[2] or '0')
  if now - seen > 1000 then redis.pcall('HSET', counters, 'seen', text(now)) end
  if seen > 0 and now - seen > ${AWAY} then
    grace = now + ${DELIVERY_LEASE}
    redis.pcall('HSET', counters, 'grace', text(grace))
  end
  if now < grace then return end
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', claimed, '-inf', text(now), 'LIMIT', 0, ${MAX_REMOVED})) do
    redis.call('ZREM', claimed, id)
    local its = redis.call('HMGET', of(id), 'state', 'route', 'until', 'kind', 'since', 'claim', 'owner', 'sender')
    local route, claim, owner, sender = its[2], its[6], its[7], its[8] or its[7]
    if its[1] == 'open' then
      if its[4] == 'write' then redis.call('HSET', of(id), 'attempt', its[5] .. ' 0  ${LEASE_ENDED}') end
      redis.call('HDEL', of(id), 'claim', 'since')
      if claim then free_place(route, claim, sender, owner) end
      wait(id, route, sender, owner, its[3])
    end
  end
end
`;

export const FINISH = `
local function finish(id, state, at, kept_until, result)
  local delivery = of(id)
  local its = redis.call('HMGET', delivery, 'route', 'size', 'order', 'blocked', 'owner', 'sender')
  local route, sender = its[1], its[6] or its[5]
  redis.call('ZREM', listed('open', route), id)
  redis.call('ZREM', ages, id)
  redis.call('HDEL', delivery, 'blocked')
  redis.call('HSET', delivery, 'state', state, 'until', at)
  redis.call('ZADD', listed(state, route), 0, id)
  redis.call('ZADD', over(state), kept_until, id)
  if evicted[state] then redis.call('ZADD', evictable(sender), kept_until, id) end
  count('open', -1, its[2], sender)
  if result ~= '' then redis.call('HSET', delivery, 'result', result, 'size', text(its[2] + #result)) end
  count(state, 1, its[2] + #result, sender)
  if not its[3] then return end
  local order = base .. 'order:' .. its[3]
  redis.call('ZREM', order, id)
  if its[4] then return end
  local following = redis.call('ZRANGE', order, 0, 0)[1]
  if not following then return end
  local next_owner, next_sender, due = unpack(redis.call('HMGET', of(following), 'owner', 'sender', 'until'))
  if not next_owner then return end
  if not due or tonumber(due) < tonumber(at) then due = at end
  redis.call('HDEL', of(following), 'blocked')
  redis.call('HSET', of(following), 'until', due)
  wait(following, route, next_sender or next_owner, next_owner, due)
end
`;

/**
 * Adds a delivery. It reads, after the first `at` arguments: id, route, client and sender, digests of the event and of the order key (empty:
 * none), when the event is forgotten, size, the maximum of deliveries, of bytes and of events, the present time, when it was accepted, then
 * names and values of the other fields, `kind` first. Returns `stored` and how many events were forgotten because there are too many;
 * `duplicate` and the id; or `full` and by what. A write whose delivery was removed is no duplicate: its key protects it, and its client
 * learns the outcome.
 */
export const ADD = `
local function add(at)
  local id, route, owner, sender, event, order, event_end = unpack(ARGV, at + 1, at + 7)
  local size, max_count, max_bytes, max_events, present, accepted, _, kind = unpack(ARGV, at + 8, at + 15)
  size, max_count, max_bytes = tonumber(size), tonumber(max_count), tonumber(max_bytes)
  local delivery = of(id)
  if redis.call('EXISTS', delivery) == 1 then return {'duplicate', id} end
  if event ~= '' then
    local ends = redis.call('ZSCORE', event_ends, event)
    local earlier = ends and tonumber(ends) > tonumber(present) and redis.call('HGET', events, event)
    if earlier and (kind ~= 'write' or redis.call('EXISTS', of(earlier)) == 1) then return {'duplicate', earlier} end
  end
  local full = full_for(sender, size, max_count, max_bytes)
  if full then return {'full', full} end
  local number = redis.call('HINCRBY', counters, 'number', 1)
  full = make_room(size, max_count, max_bytes)
  if full then return {'full', full} end
  redis.call('HSET', delivery, 'route', route, 'size', text(size), 'acceptedAt', accepted, 'until', accepted, 'state', 'open',
    'attempts', '0', 'number', number, unpack(ARGV, at + 14))
  redis.call('ZADD', listed('open', route), 0, id)
  redis.call('ZADD', ages, accepted, id)
  redis.call('SADD', routes, route)
  count('open', 1, size, sender)
  local is_blocked = false
  if order ~= '' then
    is_blocked = redis.call('ZCARD', base .. 'order:' .. order) > 0
    redis.call('ZADD', base .. 'order:' .. order, number, id)
    redis.call('HSET', delivery, 'order', order)
  end
  if is_blocked then redis.call('HSET', delivery, 'blocked', '1') else wait(id, route, sender, owner, accepted) end
  local forgotten = 0
  if event ~= '' then
    redis.call('HSET', events, event, id)
    redis.call('ZADD', event_ends, event_end, event)
    if redis.call('ZCARD', event_ends) > tonumber(max_events) then
      redis.call('HDEL', events, redis.call('ZPOPMIN', event_ends)[1])
      forgotten = 1
    end
  end
  return {'stored', text(forgotten)}
end
`;
