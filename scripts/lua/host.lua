-- The host: it reads a limit from the keys of Redis and a request from the arguments, and returns the response as one string of
-- little-endian doubles.
--
-- KEYS  1 the limit, 2 the accounts (hash: replica, doubles), 3 the time of each replica's last request (sorted set),
--       4 and 5 the replicas at which groups wait (hashes, one for each of the last two windows of WAITING_WINDOW:
--       's' the number of the window, 'h' .. length of group .. ':' .. group .. replica for each pair,
--       'n' .. group the number of its replicas in this window,
--       'u' .. group the number of those that are not in the window before),
--       6 and 7 the same for those to which groups are to return, and RETURNING_WINDOW
-- ARGV  1 the request, 2 the replica, 3 the settings, 4 the channel for broadcasts or '', 5 the limit's name there,
--       6 … the groups that wait, and those that are to return
--
-- The script writes nothing before the limit has served the request, so that an invalid request changes nothing. Where Redis has
-- no memory left, its first write must be one that Redis refuses: after a DEL, Redis would not refuse the others.

-- How long a limit is kept that is the only one of its name: the configuration bounds the number of such limits.
local EXPIRY = 3600000
-- Beyond this part of maxmemory, there is no new limit of a client, credential or path: the rest is for the keys of writes.
local MAX_MEMORY_SHARE = 0.9
-- The most results of one unpack: Lua's stack has room for 8000.
local MAX_UNPACKED = 2000

local settings
local randomValue = 0
local function random() return randomValue end

local function mapList(list, map)
  local mapped = {}
  for i = 1, #list do mapped[i] = map(list[i]) end
  return mapped
end

-- A long list that is rarely used stays packed until an element is read or written. Then it becomes a plain list.
local lazyList = {}
local function unpackInPlace(list)
  local values = cmsgpack.unpack(rawget(list, 'packed'))
  setmetatable(list, nil)
  list.packed = nil
  for i = 1, #values do list[i] = values[i] end
end
function lazyList.__index(list, key)
  unpackInPlace(list)
  return list[key]
end
function lazyList.__newindex(list, key, value)
  unpackInPlace(list)
  list[key] = value
end
local function unpackLazily(packed) return setmetatable({packed = packed}, lazyList) end
local function packLazyList(list) return rawget(list, 'packed') or cmsgpack.pack(list) end

--@ state codec

local function unpackDoubles(packed, from)
  local count = math_floor((#packed - from + 1) / 8)
  local first = math_min(count, MAX_UNPACKED)
  local list = {struct.unpack('<' .. string.rep('d', first), packed, from)}
  list[first + 1] = nil
  for at = first, count - 1, MAX_UNPACKED do
    local size = math_min(count - at, MAX_UNPACKED)
    local part = {struct.unpack('<' .. string.rep('d', size), packed, from + 8 * at)}
    for i = 1, size do list[at + i] = part[i] end
  end
  return list
end

local function packDoubles(list)
  local count = #list
  if count <= MAX_UNPACKED then return struct.pack('<' .. string.rep('d', count), unpack(list, 1, count)) end
  local parts = {}
  for at = 1, count, MAX_UNPACKED do
    local last = math_min(count, at + MAX_UNPACKED - 1)
    parts[#parts + 1] = struct.pack('<' .. string.rep('d', last - at + 1), unpack(list, at, last))
  end
  return table.concat(parts)
end

-- Returns the stored limit and the number of accounts; nil where none is stored, or one that this version cannot read.
local function readLimit()
  local stored = redis.pcall('GET', KEYS[1])
  if type(stored) ~= 'string' or string.sub(stored, 1, #VERSION) ~= VERSION then return nil end
  local isRead, list = pcall(cmsgpack.unpack, string.sub(stored, #VERSION + 1))
  if not isRead or type(list) ~= 'table' then return nil end
  -- Redis may have evicted one of these keys. Then the others are of no use.
  if redis.pcall('HLEN', KEYS[2]) ~= list[1] or redis.pcall('ZCARD', KEYS[3]) ~= list[1] then return nil end
  return readReplicaSharedLimit(list[2]), list[1]
end

-- When a replica claimed the first token of a limit that is not stored: see limit-claim.ts. Nil without a claim.
local function claimedAt()
  local stored = redis.pcall('GET', KEYS[1])
  return type(stored) == 'string' and tonumber(string.match(stored, '^claim:([%d.]+)$')) or nil
end

local now
local accountCount = 0
local deleted
local writtenAccount
local store = {}

function store.readAccount(_, replicaId)
  local packed = (deleted == nil or not deleted[replicaId]) and redis.call('HGET', KEYS[2], replicaId)
  return packed and unpackDoubles(packed, 1) or nil
end

function store.writeAccount(_, _, numbers) writtenAccount = numbers end

function store.deleteAccount(_, replicaId)
  deleted = deleted or {}
  deleted[replicaId] = true
  accountCount = accountCount - 1
end

function store.silentSince(_, before, max)
  return redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', '(' .. string.format('%.17g', before), 'LIMIT', 0, max)
end

function store.countAccounts() return accountCount end

-- Returns the hashes of this window and of the one before, the number of this one, and whether the other hash is of the one before.
local function windowsOf(first, length)
  local window = math_floor(now / length)
  local isOdd = window % 2 == 1
  local this, before = KEYS[first + (isOdd and 1 or 0)], KEYS[first + (isOdd and 0 or 1)]
  return this, before, window, tonumber(redis.call('HGET', before, 's')) == window - 1
end

local function fieldOf(group, replicaId) return 'h' .. #group .. ':' .. group .. replicaId end

-- Counts the replicas of both windows: those of the window before, and those of this one that are not among them.
local function countReplicas(this, hasThis, before, hasBefore, group)
  return (hasThis and tonumber(redis.call('HGET', this, 'u' .. group)) or 0)
    + (hasBefore and tonumber(redis.call('HGET', before, 'n' .. group)) or 0)
end

local function recordReplica(first, length, group, replicaId)
  local this, before, window, hasBefore = windowsOf(first, length)
  local field = fieldOf(group, replicaId)
  local stored = redis.call('HGET', this, 's')
  if tonumber(stored) ~= window then
    if stored then redis.call('DEL', this) end
    redis.call('HSET', this, 's', window)
    redis.call('PEXPIRE', this, 3 * length)
  end
  if redis.call('HSETNX', this, field, 1) == 1 then
    redis.call('HINCRBY', this, 'n' .. group, 1)
    if not hasBefore or redis.call('HEXISTS', before, field) == 0 then redis.call('HINCRBY', this, 'u' .. group, 1) end
  end
  return countReplicas(this, true, before, hasBefore, group)
end

function store.recordWaiting(_, group, replicaId) return recordReplica(4, WAITING_WINDOW, group, replicaId) end

function store.recordReturning(_, group, replicaId) return recordReplica(6, RETURNING_WINDOW, group, replicaId) end

function store.waitsElsewhere(_, group, replicaId)
  local this, before, window, hasBefore = windowsOf(4, WAITING_WINDOW)
  local hasThis = tonumber(redis.call('HGET', this, 's')) == window
  local field = fieldOf(group, replicaId)
  local waitsHere = hasThis and redis.call('HEXISTS', this, field) == 1
    or hasBefore and redis.call('HEXISTS', before, field) == 1
  return countReplicas(this, hasThis, before, hasBefore, group) > (waitsHere and 1 or 0)
end

local head = {struct.unpack('<ddddddddddddd', ARGV[1])}
randomValue = head[11]
local waitingGroups, returningGroups = {}, {}
for i = 6, 5 + head[12] do waitingGroups[i - 5] = ARGV[i] end
for i = 6 + head[12], #ARGV do returningGroups[#returningGroups + 1] = ARGV[i] end
local request = {
  replicaId = ARGV[2],
  now = head[1],
  usage = unpackDoubles(ARGV[1], 105),
  leasedTokens = head[2],
  inFlight = head[3],
  unanswered = head[13],
  want = head[4],
  weight = head[5],
  roundTrip = head[6],
  known = {
    epoch = head[7],
    since = head[8],
    rate = head[9],
    ceiling = head[10],
  },
  random = randomValue,
  waitingGroups = waitingGroups,
  returningGroups = returningGroups,
}
local numbers = unpackDoubles(ARGV[3], 1)
settings = {
  initialRate = numbers[1] == numbers[1] and numbers[1] or nil,
  maxRate = numbers[2],
  minRate = numbers[3],
  cooldown = numbers[4],
  maxProbeDelay = numbers[5] == numbers[5] and numbers[5] or nil,
  isPerClient = numbers[6] == 1,
  unit = nil, -- replicas count requests
  learnsFromLatency = numbers[8] == 1,
}

local time = redis.call('TIME')
local limit, storedCount = readLimit()
local isNew = limit == nil
local isKeyed = numbers[7] == 1
if isNew and isKeyed then
  local memory = redis.pcall('INFO', 'memory')
  if type(memory) == 'string' then
    local used, max = string.match(memory, 'used_memory:(%d+)'), string.match(memory, 'maxmemory:(%d+)')
    if max and tonumber(max) > 0 and tonumber(used) > MAX_MEMORY_SHARE * tonumber(max) then
      return redis.error_reply('OOM no memory for new limits: the last tenth of maxmemory is for idempotency keys')
    end
  end
end
if isNew then limit = __TS__New(ReplicaSharedLimit, __TS__New(LocalMeter, settings, random)) end
accountCount = storedCount or 0
local claimed = isNew and claimedAt()
if claimed then limit:takeClaimed(limit:now(claimed)) end
now = limit:now(1000 * time[1] + time[2] / 1000)
-- Without a limit, the other keys are of no use.
if isNew and redis.call('EXISTS', unpack(KEYS)) > 0 then redis.call('DEL', unpack(KEYS)) end

local response = limit:serve(request, store, now, isNew)

if deleted ~= nil then
  for replicaId in pairs(deleted) do
    redis.call('HDEL', KEYS[2], replicaId)
    redis.call('ZREM', KEYS[3], replicaId)
  end
end
accountCount = accountCount + redis.call('HSET', KEYS[2], ARGV[2], packDoubles(writtenAccount))
redis.call('ZADD', KEYS[3], now, ARGV[2])
local expiry = isKeyed and math.ceil(limit:retention(settings, now)) or EXPIRY
redis.call('PEXPIRE', KEYS[2], expiry)
redis.call('PEXPIRE', KEYS[3], expiry)
redis.call('SET', KEYS[1], VERSION .. cmsgpack.pack({accountCount, writeReplicaSharedLimit(limit)}), 'PX', expiry)

local function indexOf(list, name)
  for i = 1, #list do
    if list[i] == name then return i - 1 end
  end
end

-- The places of these numbers are those of decodeResponse in src/sharing/redis/lease-codec.ts, which says what must stay the same.
local NOTHING = 0 / 0
-- A function, because Lua allows the script 200 local variables.
local function encodeTerms(terms)
  local encoded = {
    terms.epoch, indexOf(LIMIT_STATES, terms.phase), terms.isUnlimited and 1 or 0, terms.rate, terms.ceiling,
    terms.concurrencyLimit or NOTHING, terms.blockedUntil or NOTHING, terms.expectedAt,
    (terms.isProbeOut and 1 or 0) + (terms.awaitsPlace and 2 or 0) + (terms.countsResponses and 4 or 0)
      + (terms.limitsUnanswered and 8 or 0) + (terms.isLatencyTest and 16 or 0),
    terms.quotaLeft or NOTHING, terms.otherWeight, terms.validFor, terms.inFlight, terms.sendCount, terms.replicas,
    0, NOTHING, NOTHING, NOTHING, terms.isQuotaPerRequester and 1 or 0,
    terms.otherDemandWeight,
  }
  local owner = terms.quotaOwner
  if owner ~= nil then
    encoded[16] = 1 + (owner.isCommon and 1 or 0) + (owner.isSpent and 2 or 0)
    encoded[17], encoded[18], encoded[19] = owner.credential or NOTHING, owner.client or NOTHING, owner['until']
  end
  for i = 22, 35 do encoded[i] = 0 end
  local block = terms.block
  if block ~= nil then
    encoded[22] = 1 + indexOf(BLOCK_CAUSES, block.cause) + (block.isPartial and #BLOCK_CAUSES or 0)
    encoded[23], encoded[24], encoded[25] = block.since, block.probeAt, block.expectedAt
    encoded[26], encoded[27] = block.heldClient, block.heldClientUntil
    for i = 1, 8 do encoded[27 + i] = block.scope[i] end
  end
  return encoded
end

local encoded = encodeTerms(response.terms)
local size = #encoded
local function append(number)
  size = size + 1
  encoded[size] = number
end
append(response.now)
-- PUBLISH may be forbidden. The response is sent all the same: all is stored by now, and the other replicas learn of the change
-- by their next request.
if response.shouldBroadcast and ARGV[4] ~= '' then
  redis.pcall('PUBLISH', ARGV[4], ARGV[5] .. '\0' .. packDoubles(encoded))
end
append(response.askAgainAt)
append(response.shouldBroadcast and 1 or 0)
append(#response.slots)
append(#response.waitingReplicas)
append(#response.returningReplicas)
append(#response.decreases)
append(response.terms.otherUnanswered)
for _, slot in ipairs(response.slots) do append(slot) end
for _, count in ipairs(response.waitingReplicas) do append(count) end
for _, count in ipairs(response.returningReplicas) do append(count) end
for _, decrease in ipairs(response.decreases) do
  append(indexOf(CUT_CAUSES, decrease.cause))
  append(decrease.from)
  append(decrease.to)
end
return packDoubles(encoded)
