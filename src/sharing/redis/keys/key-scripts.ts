/**
 * What Redis does with the state of a name, each in one step. KEYS: the states of names; the open names; the time. The last of ARGV
 * is what the time is at least. An answer has the version, the state, the owners whose lease has ended, how often it was forgotten,
 * and the time. The field `leases` has each owner of a claim and when its lease ends.
 *
 * The score of an open name is when it is dropped: above 0 if a write of it is unresolved, below 0 if it only has claims, such as
 * of a response that is being sent. If the process of such a claim ends, its write is unresolved, and nothing but this set names it.
 */

/** The time stands still rather than go back if the clock of Redis is set back; see key-store-time.ts. */
const PRELUDE = `
local open, clock = KEYS[#KEYS - 1], KEYS[#KEYS]
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
local function dropOld()
  redis.call('ZREMRANGEBYSCORE', open, string.format('%d', -now), string.format('%d', now))
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
 * write of it. After that, a name without state keeps its version, so that no process takes it for one that was never known.
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
if dropAt then
  redis.call('ZADD', open, string.format('%d', dropAt), name)
  redis.call('PEXPIRE', open, math.max(kept, redis.call('PTTL', open)))
else
  redis.call('ZREM', open, name)
end
if news == '1' or known[2] then redis.call('PUBLISH', channel, announcement) end
return {version, '', '', '0', tostring(now)}
`;

/** ARGV: this process, its lease, which is renewed where it has claims. */
export const RENEW_LEASES = `${PRELUDE}
for i = 1, #KEYS - 2 do
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

/** Returns the number of names with an unresolved write. */
export const COUNT_UNRESOLVED = `${PRELUDE}
dropOld()
return {tostring(redis.call('ZCOUNT', open, 0, '+inf')), '', '', '0', tostring(now)}
`;

/**
 * Reads several names. ARGV: after so many bytes, the others are left out. Returns five strings for each name. What another program
 * has put in the place of a name is no state, so it does not end the search.
 */
export const READ_NAMES = `${PRELUDE}
local reply, size = {}, 0
for i = 1, #KEYS - 2 do
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
