/**
 * What Redis does with the state of a name, each in one step. KEYS: the states of names; keys of clients, where a script says so; the
 * answered names; the open names; the time. The last of ARGV is what the time is at least. An answer has the version, the state, the
 * owners whose lease has ended, how often it was forgotten, and the time. The field `leases` has each owner of a claim and when its
 * lease ends.
 *
 * The score of an open name is when it is dropped: above 0 if a write of it is unresolved, below 0 if it only has claims, such as
 * of a response that is being sent after another client has a whole one. If the process of such a claim ends, its write is unresolved, and nothing but this set names it.
 * The score of an answered name is when it is dropped.
 *
 * Clients share the bound of unresolved names, as in `KeyRecords`. The client of such a name is in its field `client`. Each client has a
 * set of its names with the scores of the open ones, and `clients` has when the last of them is dropped. An earlier version that runs
 * beside this one removes names only from the open ones; what it leaves expires.
 *
 * While a slot of a cluster moves, Redis checks where KEYS are before a script runs, and only these: a script that made another key at the
 * new master would leave it on both. What a script only finds, it cannot declare: the former client of a name, and the names that it
 * removes, with their clients. It makes none of these keys, but may end with an error in its middle, after the state was stored.
 */

/** Names of a kind that a step removes at most because there are too many, and that it examines for this. */
const MAX_REMOVED = 10;
const MAX_EXAMINED = 50;

/** Expired members that a step removes from a set at most. */
export const MAX_EXPIRED = 200;

/** The time stands still rather than go back if the clock of Redis is set back; see key-store-time.ts. */
const PRELUDE = `
local answered, open, clock = KEYS[#KEYS - 2], KEYS[#KEYS - 1], KEYS[#KEYS]
local time = redis.call('TIME')
local real = time[1] * 1000 + math.floor(time[2] / 1000)
local kept_time = redis.call('HMGET', clock, 'ahead', 'last')
local now = real + (tonumber(kept_time[1] or '0') or 0)
local least = math.max(tonumber(kept_time[2] or '0') or 0, tonumber(ARGV[#ARGV]))
if now < least then
  now = least
  redis.call('HSET', clock, 'ahead', string.format('%d', now - real), 'last', string.format('%d', now))
end
local function leasesOf(text)
  return string.gmatch(text or '', '(%S+) (%S+)')
end
local function found(name)
  local known = redis.call('HMGET', name, 'version', 'state', 'leases', 'forgets')
  local gone = {}
  for owner, ends in leasesOf(known[3]) do
    if tonumber(ends) <= now then gone[#gone + 1] = owner end
  end
  return {known[1] or '', known[2] or '', table.concat(gone, ' '), known[4] or '0', tostring(now)}
end
-- A few at a time: a step is short. Those that are left count for nothing, and later steps remove them. Returns whether some may be left.
local function dropExpired(set, from)
  local expired = redis.call('ZRANGEBYSCORE', set, from, string.format('%d', now), 'LIMIT', 0, ${MAX_EXPIRED})
  if #expired > 0 then redis.call('ZREM', set, unpack(expired)) end
  return #expired == ${MAX_EXPIRED}
end
local base = string.sub(open, 1, -#'open' - 1)
local clients = base .. 'clients'
local function namesOf(client) return base .. 'client:' .. client end
local function dropOld()
  local areLeft = dropExpired(open, string.format('%d', -now))
  return dropExpired(answered, '-inf') or areLeft
end
-- A response to an answered write may still be on its way.
local function counts()
  local after, before = string.format('(%d', now), string.format('(%d', -now)
  local responding = redis.call('ZCOUNT', open, '-inf', before)
  return redis.call('ZCOUNT', open, after, '+inf'), redis.call('ZCOUNT', answered, after, '+inf') + responding
end
`;

/** ARGV: `1` if a request waits for the key. */
export const READ_NAME = `${PRELUDE}
if ARGV[1] == '1' and redis.call('EXISTS', KEYS[1]) == 1 then redis.call('HSET', KEYS[1], 'awaited', '1') end
return found(KEYS[1])
`;

/**
 * KEYS has `clients` and the set of the client, if there is a client. ARGV: the expected version, the next one, the state (empty:
 * none), the owners of its claims, the client if it is unresolved, how long it is kept, this process, its lease, the channel, the
 * announcement, `1` if it is news, the name, `1` if an operator has forgotten a write of it, how many names may be unresolved, and
 * answered, how long it is kept while a write of it is unresolved or in progress. A forgotten name without state keeps its version, so
 * that no process takes it for one that was never known. Beyond the bounds, the names are removed that would be dropped first, but none
 * in use: of the client, if it has more unresolved names than its share, otherwise of all. The second string of the answer has the
 * numbers of unresolved and answered names, and of those that were removed.
 */
export const SWAP_NAME = `${PRELUDE}
local expected, version, state, owners, client = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local kept, this, lease, channel, announcement, news, name = tonumber(ARGV[6]), ARGV[7], tonumber(ARGV[8]), ARGV[9], ARGV[10], ARGV[11], ARGV[12]
local known = redis.call('HMGET', KEYS[1], 'version', 'awaited', 'leases', 'client', 'kept')
local former = known[4] or ''
if (known[1] or '') ~= expected then return found(KEYS[1]) end
local left = redis.call('PTTL', KEYS[1])
kept = math.max(kept, tonumber(known[5] or left))
local resolved = string.format('%d', kept)
if client ~= '' or owners ~= '' then kept = math.max(kept, left, tonumber(ARGV[16])) end
if ARGV[13] == '1' then redis.call('HINCRBY', KEYS[1], 'forgets', 1) end
if state == '' and redis.call('HEXISTS', KEYS[1], 'forgets') == 0 then
  redis.call('DEL', KEYS[1])
else
  local ends, leases = {}, {}
  for owner, at in leasesOf(known[3]) do ends[owner] = at end
  ends[this] = string.format('%d', now + lease)
  for owner in string.gmatch(owners, '%S+') do leases[#leases + 1] = owner .. ' ' .. (ends[owner] or '0') end
  redis.call('HSET', KEYS[1], 'version', version, 'state', state, 'leases', table.concat(leases, ' '), 'client', client, 'kept', resolved)
  redis.call('HDEL', KEYS[1], 'awaited')
  redis.call('PEXPIRE', KEYS[1], kept)
end
redis.call('HSET', clock, 'last', string.format('%d', now))
-- By an hour more, so that most changes extend nothing.
local function extend(key)
  if redis.call('PTTL', key) < kept then redis.call('PEXPIRE', key, kept + 3600000) end
end
extend(clock)
local dropAt = now + kept
if client == '' then dropAt = state ~= '' and owners ~= '' and -dropAt end
local set = dropAt and open or state ~= '' and answered
for _, each in ipairs({open, answered}) do
  if each == set then
    redis.call('ZADD', each, string.format('%d', dropAt or now + kept), name)
    extend(each)
  else
    redis.call('ZREM', each, name)
  end
end
local function leave(one, each)
  redis.call('ZREM', namesOf(one), each)
  if redis.call('EXISTS', namesOf(one)) == 0 then redis.call('ZREM', clients, one) end
end
if former ~= '' and former ~= client then leave(former, name) end
if client ~= '' then
  local own, score = namesOf(client), string.format('%d', dropAt)
  dropExpired(own, '-inf')
  redis.call('ZADD', own, score, name)
  redis.call('ZADD', clients, 'GT', score, client)
  extend(own)
  extend(clients)
end
local prefix = string.sub(KEYS[1], 1, #KEYS[1] - #name)
local function isInUse(key)
  for _, ends in leasesOf(redis.call('HGET', key, 'leases')) do
    if tonumber(ends) > now then return true end
  end
  return false
end
local function countOf(set)
  return redis.call('ZCOUNT', set, string.format('(%d', now), '+inf')
end
-- A few at a time: a step is short, and the next change removes what is left. Names in use may be the first, so more are examined.
local function removeExcess(set, max)
  max = tonumber(max)
  local excess = math.min(countOf(set) - max, ${MAX_REMOVED})
  local removed = 0
  if excess <= 0 then return removed end
  local own = set == open and client ~= '' and namesOf(client)
  local from = own and countOf(own) - 1 > max / math.max(1, countOf(clients)) and own or set
  for _, each in ipairs(redis.call('ZRANGEBYSCORE', from, string.format('(%d', now), '+inf', 'LIMIT', 0, ${MAX_EXAMINED})) do
    if removed == excess then break end
    local key = prefix .. each
    local kind = redis.call('TYPE', key).ok
    local isListed = from == set or redis.call('ZSCORE', set, each)
    if not isListed then
      leave(client, each)
    elseif each ~= name and not (kind == 'hash' and isInUse(key)) then
      if from == own then leave(client, each) end
      local its = kind == 'hash' and redis.call('HGET', key, 'client')
      if its and its ~= '' then leave(its, each) end
      if kind == 'hash' then redis.call('DEL', key) end
      redis.call('ZREM', set, each)
      removed = removed + 1
    end
  end
  return removed
end
dropOld()
local unresolved_removed, answered_removed = removeExcess(open, ARGV[14]), removeExcess(answered, ARGV[15])
local unresolved_count, answered_count = counts()
-- Stored by now: without the permission to announce it, requests that wait elsewhere learn of it later.
if news == '1' or known[2] then redis.pcall('PUBLISH', channel, announcement) end
return {version, table.concat({unresolved_count, answered_count, unresolved_removed, answered_removed}, ' '), '', '0', tostring(now)}
`;

/**
 * ARGV: this process, its lease, which is renewed where it has claims. The second string of the answer has the numbers of the names where
 * it has none.
 */
export const RENEW_LEASES = `${PRELUDE}
local missing = {}
for i = 1, #KEYS - 3 do
  local leases, has = {}, false
  for owner, ends in leasesOf(redis.call('HGET', KEYS[i], 'leases')) do
    if owner == ARGV[1] then
      ends = string.format('%d', now + tonumber(ARGV[2]))
      has = true
    end
    leases[#leases + 1] = owner .. ' ' .. ends
  end
  if has then redis.call('HSET', KEYS[i], 'leases', table.concat(leases, ' ')) else missing[#missing + 1] = i end
end
dropOld()
return {'', table.concat(missing, ' '), '', '0', tostring(now)}
`;

/**
 * KEYS has `clients`. Returns the numbers of names with an unresolved write, and of answered ones; then `1` if expired names may be
 * left.
 */
export const COUNT_NAMES = `${PRELUDE}
local areLeft = dropOld()
areLeft = dropExpired(clients, '-inf') or areLeft
return {table.concat({counts()}, ' '), areLeft and '1' or '', '', '0', tostring(now)}
`;

/**
 * Reads several names. ARGV: after so many bytes, the others are left out. Returns five strings for each name. What another program
 * has put in the place of a name is no state, so it does not end the search.
 */
export const READ_NAMES = `${PRELUDE}
local reply, size = {}, 0
for i = 1, #KEYS - 3 do
  local kind = redis.call('TYPE', KEYS[i]).ok
  local parts = (kind == 'hash' or kind == 'none') and found(KEYS[i]) or {'', kind, '', '0', tostring(now)}
  for _, part in ipairs(parts) do
    reply[#reply + 1] = part
    size = size + #part
  end
  if size > tonumber(ARGV[1]) then break end
end
return reply
`;
