/**
 * Lua: which client's delivery is sent next. Senders share the places of a route, and clients the part of their sender.
 *
 * A client that has something due is in `clients:SENDER:ROUTE`, and its sender in `senders:ROUTE`. Both are sorted by rank: first by the
 * places that are in use at all replicas, then by turn, so that the next client is found without a look at the others. Each other client
 * that waits is in `later:SENDER:ROUTE`, by the time when its first delivery is due, and its sender in `later:ROUTE`, by the earliest of
 * these times. So a sender with many clients is one among senders as they become due, too.
 *
 * `used:ROUTE` counts the places in use: of each sender and client in all, which is its rank, and at each replica, because the `concurrency`
 * of which a sender leaves a part is that of a replica. `active:ROUTE` has whose attempt began last, and when one of any other did.
 */
import type { Millis } from '../../../core/scalars.ts';

/** After its last attempt began, a client counts as active for this time: others leave places to it. */
const ACTIVE_FOR: Millis = 60_000;
/** Of the places of a route, a ninth is left to others, and at least one. */
const PART_LEFT = 9;
/** Of a rank: one place in use weighs more than all turns. Numbers up to 2⁵³ are exact, so these are 8192 places and 10¹² turns. */
const PLACE = '2 ^ 40';
/** Senders whose clients a step moves as they become due, and how many of each. The next step comes to the others. */
const MAX_SENDERS_MOVED = 100;
const MAX_CLIENTS_MOVED = 8;
/** Of a time when nobody was active. */
const NEVER = -1e15;
/**
 * A sender that may use no more places uses more than half of them. So of two, one may, while a place is free; and of a sender's two
 * clients.
 */
const CANDIDATES = 2;

/** What each script does to a delivery that begins or ends to wait. */
export const WAIT = `
local function senders(route) return base .. 'senders:' .. route end
local function clients(route, sender) return base .. 'clients:' .. sender .. ':' .. route end
local function waiting(route, sender, owner) return base .. 'due:' .. sender .. ':' .. owner .. ':' .. route end
local function later(route) return base .. 'later:' .. route end
local function later_of(route, sender) return base .. 'later:' .. sender .. ':' .. route end
local function used(route) return base .. 'used:' .. route end
local function client_of(sender, owner) return sender .. ' ' .. owner end
local function score(number) return string.format('%.17g', number) end
local function first_of(route, sender, owner)
  local first = redis.call('ZRANGE', waiting(route, sender, owner), 0, 0, 'WITHSCORES')
  return first[1], tonumber(first[2])
end
local function leave_turns(route, sender, owner)
  redis.call('ZREM', clients(route, sender), owner)
  if redis.call('EXISTS', clients(route, sender)) == 0 then redis.call('ZREM', senders(route), sender) end
end
local function set_sender_time(route, sender)
  local first = redis.call('ZRANGE', later_of(route, sender), 0, 0, 'WITHSCORES')[2]
  if first then redis.call('ZADD', later(route), first, sender) else redis.call('ZREM', later(route), sender) end
end
local function await_time(route, sender, owner, at)
  redis.call('ZADD', later_of(route, sender), score(at), owner)
  set_sender_time(route, sender)
end
local function wait(id, route, sender, owner, at)
  redis.call('ZADD', waiting(route, sender, owner), at, id)
  if redis.call('ZSCORE', clients(route, sender), owner) then return end
  local _, first = first_of(route, sender, owner)
  await_time(route, sender, owner, first)
end
local function stop_waiting(id, route, sender, owner)
  redis.call('ZREM', waiting(route, sender, owner), id)
  local has_turn = redis.call('ZSCORE', clients(route, sender), owner)
  local _, first = first_of(route, sender, owner)
  if has_turn then
    if not first then leave_turns(route, sender, owner) end
  elseif first then await_time(route, sender, owner, first)
  else
    redis.call('ZREM', later_of(route, sender), owner)
    set_sender_time(route, sender)
  end
end
local function use_place(route, process, sender, owner, by)
  local client = client_of(sender, owner)
  local places, unused = {}, {}
  for i, field in ipairs({sender, client, process .. ' ' .. sender, process .. ' ' .. client}) do
    places[i] = redis.call('HINCRBY', used(route), field, by)
    if places[i] <= 0 then unused[#unused + 1] = field end
  end
  if #unused > 0 then redis.call('HDEL', used(route), unpack(unused)) end
  return places[1], places[2]
end
local function free_place(route, claim, sender, owner)
  local process = string.match(claim, ' (.*)$')
  use_place(route, process, sender, owner, -1)
  local places = score(-(${PLACE}))
  redis.call('ZADD', senders(route), 'XX', 'INCR', places, sender)
  redis.call('ZADD', clients(route, sender), 'XX', 'INCR', places, owner)
end
`;

/**
 * Which client is next. `turns(route, present, process, concurrency)` is used within one script. A concurrency that is nil has no bound: a
 * client leaves nothing to others.
 */
export const TURNS = `
local function next_turn() return redis.call('HINCRBY', counters, 'turns', 1) end
local function rank(route, name)
  local places = tonumber(redis.call('HGET', used(route), name) or '0')
  return score(places * ${PLACE} + next_turn())
end
local function begin_turns(route, present)
  local due = redis.call('ZRANGEBYSCORE', later(route), '-inf', score(present), 'LIMIT', 0, ${MAX_SENDERS_MOVED})
  for _, sender in ipairs(due) do
    local key = later_of(route, sender)
    local owners = redis.call('ZRANGEBYSCORE', key, '-inf', score(present), 'LIMIT', 0, ${MAX_CLIENTS_MOVED})
    for _, owner in ipairs(owners) do
      redis.call('ZREM', key, owner)
      redis.call('ZADD', clients(route, sender), rank(route, client_of(sender, owner)), owner)
    end
    set_sender_time(route, sender)
    if not redis.call('ZSCORE', senders(route), sender) then
      redis.call('ZADD', senders(route), rank(route, sender), sender)
    end
  end
  return #due > 0
end
local function begin_attempt(route, process, sender, owner, present)
  local places, own_places = use_place(route, process, sender, owner, 1)
  local turn = next_turn()
  local id, at = first_of(route, sender, owner)
  if id and at <= present then
    redis.call('ZADD', clients(route, sender), score(own_places * ${PLACE} + turn), owner)
  else
    leave_turns(route, sender, owner)
    if id then await_time(route, sender, owner, at) end
  end
  redis.call('ZADD', senders(route), 'XX', score(places * ${PLACE} + turn), sender)
end
local function turns(route, present, process, concurrency)
  local left_to_others = concurrency == 1 and 0 or concurrency and math.max(1, math.floor(concurrency / ${PART_LEFT}))
  local active = base .. 'active:' .. route
  local known = redis.call('HMGET', active, 'sender', 'sender_at', 'sender_others_at', 'client', 'client_at', 'client_others_at')
  local function read(i) return {name = known[i], at = tonumber(known[i + 1] or ${NEVER}), others_at = tonumber(known[i + 2] or ${NEVER})} end
  local last = {sender = read(1), client = read(4)}
  local function may_use(kind, name)
    local one = last[kind]
    local others_at = one.name == name and one.others_at or one.at
    if not concurrency or present - others_at > ${ACTIVE_FOR} then return true end
    local places = tonumber(redis.call('HGET', used(route), process .. ' ' .. name) or '0')
    return places < concurrency - left_to_others
  end
  local function begin(kind, name)
    local one = last[kind]
    if one.name and one.name ~= name then one.others_at = one.at end
    one.name, one.at = name, present
  end
  return {
    next = function()
      for _, sender in ipairs(redis.call('ZRANGE', senders(route), 0, ${CANDIDATES - 1})) do
        if may_use('sender', sender) then
          for _, owner in ipairs(redis.call('ZRANGE', clients(route, sender), 0, ${CANDIDATES - 1})) do
            if may_use('client', client_of(sender, owner)) then return sender, owner end
          end
        end
      end
    end,
    begin = function(sender, owner)
      begin_attempt(route, process, sender, owner, present)
      begin('sender', sender)
      begin('client', client_of(sender, owner))
    end,
    save = function()
      local facts = {}
      for kind, one in pairs(last) do
        for name, value in pairs({[''] = one.name, _at = score(one.at), _others_at = score(one.others_at)}) do
          facts[#facts + 1] = kind .. name
          facts[#facts + 1] = value
        end
      end
      redis.call('HSET', active, unpack(facts))
    end,
  }
end
`;

/** When the next delivery of a route is due that waits; nil if none does. */
export const NEXT_DUE = `
local function next_due(route)
  local next_at = tonumber(redis.call('ZRANGE', later(route), 0, 0, 'WITHSCORES')[2])
  local sender = redis.call('ZRANGE', senders(route), 0, 0)[1]
  if not sender then return next_at end
  local _, at = first_of(route, sender, redis.call('ZRANGE', clients(route, sender), 0, 0)[1])
  if not next_at or (at and at < next_at) then return at end
  return next_at
end
`;
