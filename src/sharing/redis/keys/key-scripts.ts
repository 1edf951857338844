/**
 * What Redis does with the state of a name, each in one step. KEYS: the states of names; the answered names; the open names; the
 * time. The last of ARGV is what the time is at least. An answer has the version, the state, the owners whose lease has ended, how often it was forgotten,
 * and the time. The field `leases` has each owner of a claim and when its lease ends.
 *
 * The score of an open name is when it is dropped: above 0 if a write of it is unresolved, below 0 if it only has claims, such as
 * of a response that is being sent. If the process of such a claim ends, its write is unresolved, and nothing but this set names it.
 * The score of an answered name is when it is dropped.
 */

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
-- A few at a time: a step is short. Those that are left count for nothing, and later steps remove them.
local function dropExpired(set, from)
  local expired = redis.call('ZRANGEBYSCORE', set, from, string.format('%d', now), 'LIMIT', 0, ${MAX_EXPIRED})
  if #expired > 0 then redis.call('ZREM', set, unpack(expired)) end
end
local function dropOld()
  dropExpired(open, string.format('%d', -now))
  dropExpired(answered, '-inf')
end
-- Of an answered write, a response may still be sent.
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
 * ARGV: the expected version, the next one, the state (empty: none), the owners of its claims, `1` if it is unresolved, how long it
 * is kept, this process, its lease, the channel, the announcement, `1` if it is news, the name, `1` if an operator has forgotten a
 * write of it, how many names may be unresolved, and answered. A forgotten name without state keeps its version, so that no process
 * takes it for one that was never known. Beyond the bounds, the names are removed that would be dropped first, but none in use. The
 * second string of the answer has the numbers of unresolved and answered names, and of those that were removed.
 */
export const SWAP_NAME = `${PRELUDE}
local expected, version, state, owners, unresolved = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local kept, this, lease, channel, announcement, news, name = tonumber(ARGV[6]), ARGV[7], tonumber(ARGV[8]), ARGV[9], ARGV[10], ARGV[11], ARGV[12]
local known = redis.call('HMGET', KEYS[1], 'version', 'awaited', 'leases')
if (known[1] or '') ~= expected then return found(KEYS[1]) end
if ARGV[13] == '1' then redis.call('HINCRBY', KEYS[1], 'forgets', 1) end
if state == '' and redis.call('HEXISTS', KEYS[1], 'forgets') == 0 then
  redis.call('DEL', KEYS[1])
else
  local ends, leases = {}, {}
  for owner, at in leasesOf(known[3]) do ends[owner] = at end
  ends[this] = string.format('%d', now + lease)
  for owner in string.gmatch(owners, '%S+') do leases[#leases + 1] = owner .. ' ' .. (ends[owner] or '0') end
  redis.call('HSET', KEYS[1], 'version', version, 'state', state, 'leases', table.concat(leases, ' '))
  redis.call('HDEL', KEYS[1], 'awaited')
  kept = math.max(kept, redis.call('PTTL', KEYS[1]))
  redis.call('PEXPIRE', KEYS[1], kept)
end
redis.call('HSET', clock, 'last', string.format('%d', now))
redis.call('PEXPIRE', clock, math.max(kept, redis.call('PTTL', clock)))
local dropAt = now + kept
if unresolved ~= '1' then dropAt = owners ~= '' and -dropAt end
local set = dropAt and open or state ~= '' and answered
for _, each in ipairs({open, answered}) do
  if each == set then
    redis.call('ZADD', each, string.format('%d', dropAt or now + kept), name)
    redis.call('PEXPIRE', each, math.max(kept, redis.call('PTTL', each)))
  else
    redis.call('ZREM', each, name)
  end
end
local prefix = string.sub(KEYS[1], 1, #KEYS[1] - #name)
local function isInUse(key)
  for _, ends in leasesOf(redis.call('HGET', key, 'leases')) do
    if tonumber(ends) > now then return true end
  end
  return false
end
-- A few at a time: a step is short, and the next change removes what is left.
local function removeExcess(from, max)
  local excess = redis.call('ZCOUNT', from, string.format('(%d', now), '+inf') - tonumber(max)
  local removed = 0
  if excess <= 0 then return removed end
  for _, each in ipairs(redis.call('ZRANGEBYSCORE', from, string.format('(%d', now), '+inf', 'LIMIT', 0, 10)) do
    local key = prefix .. each
    local kind = redis.call('TYPE', key).ok
    if removed < excess and each ~= name and not (kind == 'hash' and isInUse(key)) then
      if kind == 'hash' then redis.call('DEL', key) end
      redis.call('ZREM', from, each)
      removed = removed + 1
    end
  end
  return removed
end
dropOld()
local unresolved_removed, answered_removed = removeExcess(open, ARGV[14]), removeExcess(answered, ARGV[15])
local unresolved_count, answered_count = counts()
if news == '1' or known[2] then redis.call('PUBLISH', channel, announcement) end
return {version, table.concat({unresolved_count, answered_count, unresolved_removed, answered_removed}, ' '), '', '0', tostring(now)}
`;

/** ARGV: this process, its lease, which is renewed where it has claims. */
export const RENEW_LEASES = `${PRELUDE}
for i = 1, #KEYS - 3 do
  local leases, has = {}, false
  for owner, ends in leasesOf(redis.call('HGET', KEYS[i], 'leases')) do
    if owner == ARGV[1] then
      ends = string.format('%d', now + tonumber(ARGV[2]))
      has = true
    end
    leases[#leases + 1] = owner .. ' ' .. ends
  end
  if has then redis.call('HSET', KEYS[i], 'leases', table.concat(leases, ' ')) end
end
dropOld()
return {'', '', '', '0', tostring(now)}
`;

/** Returns the numbers of names with an unresolved write, and of answered ones. */
export const COUNT_NAMES = `${PRELUDE}
dropOld()
return {table.concat({counts()}, ' '), '', '', '0', tostring(now)}
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
