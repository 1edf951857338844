/** What several scripts about deliveries have in common. */
import type { Millis } from '../../../core/scalars.ts';

/** A replica that has not renewed its claims for this long has ended: they are due again. */
export const DELIVERY_LEASE: Millis = 15_000;
/** Without a call of any replica for this long, Redis was away: the replicas have had no chance to renew their claims. */
const AWAY: Millis = 5000;
/** Deliveries that a script removes, or makes due again, at most: a step is short. */
export const MAX_REMOVED = 100;

export const quote = (names: readonly string[]): string => names.map((name) => `'${name}'`).join(', ');

export const PRELUDE = `
local counters = KEYS[1]
local base = string.sub(counters, 1, -#'counters' - 1)
local claimed, routes, ages = base .. 'claimed', base .. 'routes', base .. 'ages'
local events, event_ends = base .. 'events', base .. 'event-ends'
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function text(number) return string.format('%d', number) end
local function of(id) return base .. 'of:' .. id end
local function due(route) return base .. 'due:' .. route end
local function listed(state, route) return base .. 'in:' .. state .. ':' .. route end
local function over(state) return base .. 'over:' .. state end
local function figure(name) return tonumber(redis.call('HGET', counters, name) or '0') end
local function count(state, by, size)
  redis.call('HINCRBY', counters, 'count:' .. state, by)
  redis.call('HINCRBY', counters, 'bytes:' .. state, by * size)
end
`;

export const RECLAIM = `
local function reclaim()
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
    local its = redis.call('HMGET', of(id), 'state', 'route', 'until')
    if its[1] == 'open' then
      redis.call('HDEL', of(id), 'claim', 'since')
      redis.call('ZADD', due(its[2]), its[3], id)
    end
  end
end
`;

export const REMOVE = `
local function remove(id, state)
  local its = redis.call('HMGET', of(id), 'route', 'size')
  redis.call('ZREM', over(state), id)
  if not its[1] then return end
  redis.call('ZREM', listed(state, its[1]), id)
  redis.call('DEL', of(id))
  count(state, -1, its[2])
end
`;

export const FINISH = `
local function finish(id, state, at, kept_until, result)
  local delivery = of(id)
  local its = redis.call('HMGET', delivery, 'route', 'size', 'order', 'blocked')
  local route = its[1]
  redis.call('ZREM', listed('open', route), id)
  redis.call('ZREM', ages, id)
  redis.call('HDEL', delivery, 'blocked')
  redis.call('HSET', delivery, 'state', state, 'until', at)
  redis.call('ZADD', listed(state, route), 0, id)
  redis.call('ZADD', over(state), kept_until, id)
  count('open', -1, its[2])
  if result ~= '' then redis.call('HSET', delivery, 'result', result, 'size', text(its[2] + #result)) end
  count(state, 1, its[2] + #result)
  if not its[3] then return end
  local order = base .. 'order:' .. its[3]
  redis.call('ZREM', order, id)
  if its[4] then return end
  local following = redis.call('ZRANGE', order, 0, 0)[1]
  if not following then return end
  local later = redis.call('HGET', of(following), 'until')
  if not later or tonumber(later) < tonumber(at) then later = at end
  redis.call('HDEL', of(following), 'blocked')
  redis.call('HSET', of(following), 'until', later)
  redis.call('ZADD', due(route), later, following)
end
`;

/** Those that are over without having failed are removed to make room, in this order. */
export const EVICTED_STATES = ['delivered', 'canceled'] as const;
/** Those that are not removed to make room. */
export const LASTING_STATES = ['open', 'dead', 'unknown'] as const;
export const STORED_STATES = [...LASTING_STATES, ...EVICTED_STATES] as const;
export type StoredState = (typeof STORED_STATES)[number];
