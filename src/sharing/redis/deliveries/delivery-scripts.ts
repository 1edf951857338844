/**
 * The Lua scripts of deliveries, each atomic. KEYS[1] is the key of the counters, the prefix of all other names; then the keys of the
 * script. All of them are in one slot of a cluster, because one script changes a delivery, its order and the counters.
 *
 * Keys: `of:ID` is a delivery with its sealed message. `in:STATE:ROUTE` has the ids of a state, `open` before the end.
 * `due:SENDER:CLIENT:ROUTE` has those of a client that wait, by the time when they are due; delivery-turn-parts.ts has the keys by which
 * clients take turns, and delivery-room-parts.ts those by which senders share the store. `claimed` has those that are being sent, by the end of the lease. `order:DIGEST` has
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
import { COUNT, REMOVE, ROOM } from './delivery-room-parts.ts';
import { ADD, ALLOW_FULL, DELIVERY_LEASE, FINISH, PRELUDE, quote, RECLAIM } from './delivery-script-parts.ts';
import { NEXT_DUE, TURNS, WAIT } from './delivery-turn-parts.ts';

/** Of messages that are taken at a time, about. */
const MAX_TAKEN_BYTES = 8 * 1024 * 1024;
/** The first arguments of a change: those of its callback follow. */
const CHANGE_ARGUMENTS = 9;
/** Before a delivery is looked for again whose key is missing: while a slot of a cluster moves, it may be at the other master. */
const MISSING: Millis = 60_000;
/** While what is due belongs to clients that may use no more places, a route is looked at again so often. */
const LOOK_AGAIN: Millis = 1000;
/** Clients of which a step finds that nothing is due any more. */
const MAX_IDLE_LOOKS = 100;

/** KEYS: the delivery. ARGV: what `add` reads. Returns what `add` returns. */
export const ADD_DELIVERY = `${PRELUDE}${COUNT}${WAIT}${REMOVE}${ROOM}${ADD}
return add(0)
`;

/**
 * ARGV: the present time, how many, this replica, the route, its places at this replica (empty: without bound). Returns what was claimed
 * (id, claim, message and fields of each), and when the next one can be claimed, or an empty string. A claim is never used again, also
 * after Redis has lost its latest data.
 */
export const TAKE = `${PRELUDE}${WAIT}${RECLAIM}${TURNS}${NEXT_DUE}
reclaim()
local present, limit, process, route = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4]
local taken, bytes, looks, may_none = {}, 0, 0, false
local in_turn = limit > 0 and turns(route, present, process, tonumber(ARGV[5]))
if in_turn then begin_turns(route, present) end
while #taken < limit and bytes <= ${MAX_TAKEN_BYTES} and looks < limit + ${MAX_IDLE_LOOKS} do
  looks = looks + 1
  local sender, owner = in_turn.next()
  if not sender and begin_turns(route, present) then sender, owner = in_turn.next() end
  if not sender then
    may_none = true
    break
  end
  local id, due = first_of(route, sender, owner)
  if not id or due > present then
    leave_turns(route, sender, owner)
    await_time(route, sender, owner, due or present + ${MISSING})
  else
    local size = redis.call('HGET', of(id), 'size')
    if size then
      redis.call('ZREM', waiting(route, sender, owner), id)
      local claim = redis.call('HINCRBY', counters, 'claims', 1) .. ' ' .. process
      redis.call('HSET', of(id), 'claim', claim, 'since', ARGV[1])
      redis.call('ZADD', claimed, text(now + ${DELIVERY_LEASE}), id)
      taken[#taken + 1] = {id, claim, redis.call('HGET', of(id), 'message'), redis.call('HMGET', of(id), ${quote(DELIVERY_FIELDS)})}
      bytes = bytes + size
      in_turn.begin(sender, owner)
    else
      redis.call('ZADD', waiting(route, sender, owner), score(present + ${MISSING}), id)
    end
  end
end
if #taken > 0 then in_turn.save() end
local next_at = looks == limit + ${MAX_IDLE_LOOKS} and present or next_due(route)
if next_at and next_at <= present and may_none then
  local later_at = tonumber(redis.call('ZRANGE', later(route), 0, 0, 'WITHSCORES')[2])
  next_at = math.min(present + ${LOOK_AGAIN}, later_at or present + ${LOOK_AGAIN})
end
return {taken, next_at and score(next_at) or ''}
`;

/**
 * KEYS: the delivery. ARGV: id, claim, the end (empty: it is postponed), when it ended or is due, until when it is kept, the attempt
 * (empty: none), when that began, `1` if it counts, the result (empty: none), then what `add` reads of the callback, if there is one. Returns
 * `lost` if another replica has claimed it since, or the change is stored already; else `stored`, and what `add` returns of the callback.
 */
export const CHANGE = `${PRELUDE}${COUNT}${WAIT}${FINISH}${REMOVE}${ROOM}${ADD}
local id, delivery = ARGV[1], KEYS[2]
local its = redis.call('HMGET', delivery, 'claim', 'route', 'owner', 'sender')
local route, owner, sender = its[2], its[3], its[4] or its[3]
if its[1] ~= ARGV[2] then return {'lost'} end
redis.call('ZREM', claimed, id)
redis.call('HDEL', delivery, 'claim', 'since')
free_place(route, its[1], sender, owner)
if ARGV[6] ~= '' then
  redis.call('HSET', delivery, 'attempt', ARGV[6])
  if ARGV[8] == '1' then
    redis.call('HINCRBY', delivery, 'attempts', 1)
    redis.call('HSETNX', delivery, 'startedAt', ARGV[7])
  end
end
if ARGV[3] == '' then
  redis.call('HSET', delivery, 'until', ARGV[4])
  wait(id, route, sender, owner, ARGV[4])
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
