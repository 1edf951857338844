/**
 * What Redis does with the state of a name, each in one step. KEYS: the state; the names with unresolved writes, by when they
 * are dropped; the leases of processes, by when they end. Each answer ends with Redis' time.
 */

const PRELUDE = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function found()
  local known = redis.call('HMGET', KEYS[1], 'version', 'state', 'owners')
  local gone = {}
  for owner in string.gmatch(known[3] or '', '%S+') do
    local lease = redis.call('HGET', KEYS[3], owner)
    if not lease or tonumber(lease) <= now then gone[#gone + 1] = owner end
  end
  return {known[1] or '', known[2] or '', table.concat(gone, ' '), tostring(now)}
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
 * is kept, this process, its lease, the channel, the announcement, `1` if it is news, the name.
 */
export const SWAP_NAME = `${PRELUDE}
local expected, version, state, owners, unresolved = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local kept, owner, lease, channel, announcement, news, name = tonumber(ARGV[6]), ARGV[7], tonumber(ARGV[8]), ARGV[9], ARGV[10], ARGV[11], ARGV[12]
local known = redis.call('HMGET', KEYS[1], 'version', 'awaited')
if (known[1] or '') ~= expected then return found() end
if state == '' then
  redis.call('DEL', KEYS[1])
else
  redis.call('HSET', KEYS[1], 'version', version, 'state', state, 'owners', owners)
  redis.call('HDEL', KEYS[1], 'awaited')
  redis.call('PEXPIRE', KEYS[1], math.max(kept, redis.call('PTTL', KEYS[1])))
end
if unresolved == '1' then
  redis.call('ZADD', KEYS[2], string.format('%d', now + kept), name)
  redis.call('PEXPIRE', KEYS[2], math.max(kept, redis.call('PTTL', KEYS[2])))
else
  redis.call('ZREM', KEYS[2], name)
end
renew(owner, lease)
if news == '1' or known[2] then redis.call('PUBLISH', channel, announcement) end
return {version, '', '', tostring(now)}
`;

/** ARGV: this process, its lease. Leases that have ended are removed: no lease means the same. */
export const RENEW_LEASE = `${PRELUDE}
renew(ARGV[1], tonumber(ARGV[2]))
local leases = redis.call('HGETALL', KEYS[3])
for i = 1, #leases, 2 do
  if tonumber(leases[i + 1]) <= now then redis.call('HDEL', KEYS[3], leases[i]) end
end
return {'', '', '', tostring(now)}
`;

/** Returns whether any name has an unresolved write. */
export const COUNT_UNRESOLVED = `${PRELUDE}
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
return {tostring(redis.call('ZCARD', KEYS[2])), '', '', tostring(now)}
`;
