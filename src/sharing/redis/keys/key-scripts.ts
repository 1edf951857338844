/**
 * What Redis does with the state of a name, each in one step. KEYS: the state; the open names; the leases of processes, by when
 * they end. An answer has the version, the state, the owners whose lease has ended, how often it was forgotten, and Redis' time.
 *
 * The score of an open name is when it is dropped: above 0 if a write of it is unresolved, below 0 if it only has claims, such as
 * of a response that is being sent. If the process of such a claim ends, its write is unresolved, and nothing but this set names it.
 */

const KNOWN = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function knownOf(name, leases)
  local known = redis.call('HMGET', name, 'version', 'state', 'owners', 'forgets')
  local gone = {}
  for owner in string.gmatch(known[3] or '', '%S+') do
    local lease = redis.call('HGET', leases, owner)
    if not lease or tonumber(lease) <= now then gone[#gone + 1] = owner end
  end
  return {known[1] or '', known[2] or '', table.concat(gone, ' '), known[4] or '0', tostring(now)}
end
`;

const PRELUDE = `${KNOWN}
local function found()
  return knownOf(KEYS[1], KEYS[3])
end
local function dropOld()
  redis.call('ZREMRANGEBYSCORE', KEYS[2], string.format('%d', -now), string.format('%d', now))
end
local function renew(owner, lease)
  redis.call('HSET', KEYS[3], owner, string.format('%d', now + lease))
  redis.call('PEXPIRE', KEYS[3], math.max(4 * lease, redis.call('PTTL', KEYS[3])))
end
`;

/** ARGV: `1` if a request waits for the key. */
export const READ_NAME = `${PRELUDE}
if ARGV[1] == '1' and redis.call('EXISTS', KEYS[1]) == 1 then redis.call('HSET', KEYS[1], 'awaited', '1') end
return found()
`;

/**
 * ARGV: the expected version, the next one, the state (empty: none), the owners of its claims, `1` if it is unresolved, how long it
 * is kept, this process, its lease, the channel, the announcement, `1` if it is news, the name, `1` if an operator has forgotten a
 * write of it. After that, a name without state keeps its version, so that no process takes it for one that was never known.
 */
export const SWAP_NAME = `${PRELUDE}
local expected, version, state, owners, unresolved = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local kept, owner, lease, channel, announcement, news, name = tonumber(ARGV[6]), ARGV[7], tonumber(ARGV[8]), ARGV[9], ARGV[10], ARGV[11], ARGV[12]
local known = redis.call('HMGET', KEYS[1], 'version', 'awaited')
if (known[1] or '') ~= expected then return found() end
if ARGV[13] == '1' then redis.call('HINCRBY', KEYS[1], 'forgets', 1) end
if state == '' and redis.call('HEXISTS', KEYS[1], 'forgets') == 0 then
  redis.call('DEL', KEYS[1])
else
  redis.call('HSET', KEYS[1], 'version', version, 'state', state, 'owners', owners)
  redis.call('HDEL', KEYS[1], 'awaited')
  kept = math.max(kept, redis.call('PTTL', KEYS[1]))
  redis.call('PEXPIRE', KEYS[1], kept)
end
local dropAt = now + kept
if unresolved ~= '1' then dropAt = owners ~= '' and -dropAt end
if dropAt then
  redis.call('ZADD', KEYS[2], string.format('%d', dropAt), name)
  redis.call('PEXPIRE', KEYS[2], math.max(kept, redis.call('PTTL', KEYS[2])))
else
  redis.call('ZREM', KEYS[2], name)
end
renew(owner, lease)
if news == '1' or known[2] then redis.call('PUBLISH', channel, announcement) end
return {version, '', '', '0', tostring(now)}
`;

/** ARGV: this process, its lease. Leases that have ended are removed: no lease means the same. */
export const RENEW_LEASE = `${PRELUDE}
renew(ARGV[1], tonumber(ARGV[2]))
local leases = redis.call('HGETALL', KEYS[3])
for i = 1, #leases, 2 do
  if tonumber(leases[i + 1]) <= now then redis.call('HDEL', KEYS[3], leases[i]) end
end
dropOld()
return {'', '', '', '0', tostring(now)}
`;

/** Returns whether any name has an unresolved write. */
export const COUNT_UNRESOLVED = `${PRELUDE}
dropOld()
return {tostring(redis.call('ZCOUNT', KEYS[2], 0, '+inf')), '', '', '0', tostring(now)}
`;

/**
 * Reads several names of one upstream. KEYS: the leases, then the states. ARGV: after so many bytes, the others are left out.
 * Returns five strings for each name.
 */
export const READ_NAMES = `${KNOWN}
local reply, size = {}, 0
for i = 2, #KEYS do
  for _, part in ipairs(knownOf(KEYS[i], KEYS[1])) do
    reply[#reply + 1] = part
    size = size + #part
  end
  if size > tonumber(ARGV[1]) then break end
end
return reply
`;
