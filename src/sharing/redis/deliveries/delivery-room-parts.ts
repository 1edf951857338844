/**
 * Lua: how the room of the store is shared among senders. `stored` has the number and the bytes of each sender's deliveries that are not
 * removed to make room. `evictable` has the senders of the others, by number, and `evictable:SENDER` these, by the time when they are removed.
 */
import { EVICTED_STATES, LASTING_STATES, quote, STORED_STATES } from './delivery-script-parts.ts';

/** A sender has at most this many times what is free: one leaves a ninth to others, two leave a seventeenth. */
const MAX_PER_FREE = 8;
/** A sender with more of those that can be removed loses its own ones first. */
const LARGE_PART = '1 / 9';
/** Deliveries that are removed at most for one: a large one may need the room of many. */
const MAX_EVICTED = 1000;

export const COUNT = `
local evicted = {${EVICTED_STATES.map((state) => `${state} = true`).join(', ')}}
local stored = base .. 'stored'
local function evictable(sender) return base .. 'evictable:' .. sender end
local function count(state, by, size, sender)
  redis.call('HINCRBY', counters, 'count:' .. state, by)
  redis.call('HINCRBY', counters, 'bytes:' .. state, by * size)
  if evicted[state] then
    if tonumber(redis.call('ZINCRBY', base .. 'evictable', by, sender)) <= 0 then
      redis.call('ZREM', base .. 'evictable', sender)
    end
  else
    local left = redis.call('HINCRBY', stored, 'count:' .. sender, by)
    redis.call('HINCRBY', stored, 'bytes:' .. sender, by * size)
    if left <= 0 then redis.call('HDEL', stored, 'count:' .. sender, 'bytes:' .. sender) end
  end
end
`;

export const REMOVE = `
local function remove(id, state)
  local its = redis.call('HMGET', of(id), 'route', 'size', 'owner', 'sender')
  redis.call('ZREM', over(state), id)
  if not its[1] then return 0, 0 end
  local sender = its[4] or its[3]
  redis.call('ZREM', listed(state, its[1]), id)
  if evicted[state] then redis.call('ZREM', evictable(sender), id) end
  redis.call('DEL', of(id))
  count(state, -1, its[2], sender)
  return 1, its[2]
end
`;

/** `full_for` and `make_room` return by what there is no room, or nil. */
export const ROOM = `
local function sum_of(states)
  local sum, bytes = 0, 0
  for _, state in ipairs(states) do
    sum = sum + figure('count:' .. state)
    bytes = bytes + figure('bytes:' .. state)
  end
  return sum, bytes
end
local function full_for(sender, size, max_count, max_bytes)
  local sum, bytes = sum_of({${quote(LASTING_STATES)}})
  if sum >= max_count then return 'count' end
  if bytes + size > max_bytes then return 'bytes' end
  local own = redis.call('HMGET', stored, 'count:' .. sender, 'bytes:' .. sender)
  if tonumber(own[1] or '0') >= ${MAX_PER_FREE} * (max_count - sum) then return 'count' end
  if tonumber(own[2] or '0') >= ${MAX_PER_FREE} * (max_bytes - bytes) then return 'bytes' end
end
local function evict()
  local largest = redis.call('ZREVRANGE', base .. 'evictable', 0, 0, 'WITHSCORES')
  if largest[1] and tonumber(largest[2]) > sum_of({${quote(EVICTED_STATES)}}) * ${LARGE_PART} then
    local id = redis.call('ZRANGE', evictable(largest[1]), 0, 0)[1]
    local state = id and redis.call('HGET', of(id), 'state')
    if state then return remove(id, state) end
  end
  for _, state in ipairs({${quote(EVICTED_STATES)}}) do
    local id = redis.call('ZRANGE', over(state), 0, 0)[1]
    if id then return remove(id, state) end
  end
end
local function make_room(size, max_count, max_bytes)
  local sum, bytes = sum_of({${quote(STORED_STATES)}})
  for removed = 0, ${MAX_EVICTED} do
    local full = sum >= max_count and 'count' or bytes + size > max_bytes and 'bytes' or nil
    if not full or removed == ${MAX_EVICTED} then return full end
    local number, freed = evict()
    if not number then return full end
    sum, bytes = sum - number, bytes - freed
  end
end
`;
