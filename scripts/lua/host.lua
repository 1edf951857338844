-- The host: a limit in keys of Redis, a call in arguments, its answer in one string of little-endian doubles.
--
-- KEYS  1 the limit, 2 the accounts (hash: holder, doubles), 3 when each holder was heard (sorted set),
--       4 and 5 who waits: of spans of WAITS_FOR by turns, so that two are kept and the one before is dropped (hash:
--       's' the span, 'n' and 'u' .. client with how many it waits in this span and with how many of those not in the one
--       before, 'h' .. length of client .. ':' .. client .. holder for each of them)
-- ARGV  1 the call, 2 the holder, 3 the settings, 4 the channel for news or '', 5 the name there, 6 … clients
--
-- Nothing is written before the limit has taken in all of the call: one that cannot be read changes nothing.

local KEPT_FOR = 3600000
-- Results of one unpack: Lua's stack has room for 8000.
local MOST_UNPACKED = 2000

local settings
local chance = 0
local function random() return chance end

local function mapList(list, map)
  local mapped = {}
  for i = 1, #list do mapped[i] = map(list[i]) end
  return mapped
end

-- A long list that is rarely looked at stays packed until it is: then it becomes a plain one.
local later = {}
local function open(list)
  local values = cmsgpack.unpack(rawget(list, 'packed'))
  setmetatable(list, nil)
  list.packed = nil
  for i = 1, #values do list[i] = values[i] end
end
function later.__index(list, key)
  open(list)
  return list[key]
end
function later.__newindex(list, key, value)
  open(list)
  list[key] = value
end
local function unpackLater(packed) return setmetatable({packed = packed}, later) end
local function packAgain(list) return rawget(list, 'packed') or cmsgpack.pack(list) end

--@ keeper

local function unpackDoubles(packed, from)
  local count = math_floor((#packed - from + 1) / 8)
  local first = math_min(count, MOST_UNPACKED)
  local list = {struct.unpack('<' .. string.rep('d', first), packed, from)}
  list[first + 1] = nil
  for at = first, count - 1, MOST_UNPACKED do
    local size = math_min(count - at, MOST_UNPACKED)
    local part = {struct.unpack('<' .. string.rep('d', size), packed, from + 8 * at)}
    for i = 1, size do list[at + i] = part[i] end
  end
  return list
end

local function packDoubles(list)
  local count = #list
  if count <= MOST_UNPACKED then return struct.pack('<' .. string.rep('d', count), unpack(list, 1, count)) end
  local parts = {}
  for at = 1, count, MOST_UNPACKED do
    local last = math_min(count, at + MOST_UNPACKED - 1)
    parts[#parts + 1] = struct.pack('<' .. string.rep('d', last - at + 1), unpack(list, at, last))
  end
  return table.concat(parts)
end

-- The limit as it is kept; nil where nothing is, or what cannot be read: of another version, say.
local function readLimit()
  local kept = redis.pcall('GET', KEYS[1])
  if type(kept) ~= 'string' or string.sub(kept, 1, #VERSION) ~= VERSION then return nil end
  local isRead, list = pcall(cmsgpack.unpack, string.sub(kept, #VERSION + 1))
  if not isRead or type(list) ~= 'table' then return nil end
  -- One of these keys may have been evicted: what the others say is of no use then.
  if redis.pcall('HLEN', KEYS[2]) ~= list[1] or redis.pcall('ZCARD', KEYS[3]) ~= list[1] then return nil end
  return readPooledLimit(list[2]), list[1]
end

local now
local accounts = 0
local buried
local shelf = {}

function shelf.readAccount(_, holder)
  local packed = (buried == nil or not buried[holder]) and redis.call('HGET', KEYS[2], holder)
  return packed and unpackDoubles(packed, 1) or nil
end

local keptAccount
function shelf.keepAccount(_, _, numbers) keptAccount = numbers end

function shelf.dropAccount(_, holder)
  buried = buried or {}
  buried[holder] = true
  accounts = accounts - 1
end

function shelf.silentSince(_, before, most)
  return redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', '(' .. string.format('%.17g', before), 'LIMIT', 0, most)
end

function shelf.countAccounts() return accounts end

--@ waiting

local call = {struct.unpack('<ddddddddddd', ARGV[1])}
local happenings = unpackDoubles(ARGV[1], 89)
local given = unpackDoubles(ARGV[3], 1)
settings = {initialRate = given[1] == given[1] and given[1] or nil, maxRate = given[2], minRate = given[3], cooldown = given[4], maxProbeDelay = given[5] == given[5] and given[5] or nil, isOfOne = given[6] == 1}
chance = call[11]

local time = redis.call('TIME') -- the clock
local limit, known = readLimit()
local isNew = limit == nil
if isNew then limit = __TS__New(PooledLimit, __TS__New(LocalMeter, settings, random)) end
accounts = known or 0
now = limit:now(1000 * time[1] + time[2] / 1000)
-- Nothing is kept beside what is not there.
if isNew then redis.call('DEL', KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]) end

local answer = limit:serve({
  holder = ARGV[2],
  now = call[1],
  happenings = happenings,
  lent = call[2],
  inFlight = call[3],
  want = call[4],
  weight = call[5],
  roundTrip = call[6],
  known = {epoch = call[7], since = call[8], rate = call[9], ceiling = call[10]},
  chance = chance,
  clients = clients,
}, shelf, now, isNew)

if buried ~= nil then
  for holder in pairs(buried) do
    redis.call('HDEL', KEYS[2], holder)
    redis.call('ZREM', KEYS[3], holder)
  end
end
accounts = accounts + redis.call('HSET', KEYS[2], ARGV[2], packDoubles(keptAccount))
redis.call('ZADD', KEYS[3], now, ARGV[2])
redis.call('PEXPIRE', KEYS[2], KEPT_FOR)
redis.call('PEXPIRE', KEYS[3], KEPT_FOR)
redis.call('SET', KEYS[1], VERSION .. cmsgpack.pack({accounts, writePooledLimit(limit)}), 'PX', KEPT_FOR)

local function indexOf(list, name)
  for i = 1, #list do
    if list[i] == name then return i - 1 end
  end
end

local UNKNOWN_NUMBER = 0 / 0
local terms = answer.terms
local told = {
  terms.epoch, indexOf(LIMIT_STATES, terms.phase), terms.isFree and 1 or 0, terms.rate, terms.ceiling,
  terms.places or UNKNOWN_NUMBER, terms.blockedUntil or UNKNOWN_NUMBER, terms.expectedAt, terms.isProbeOut and 1 or 0,
  terms.quotaLeft or UNKNOWN_NUMBER, terms.others, terms.validFor, terms.inFlight, terms.sends, terms.holders,
  0, UNKNOWN_NUMBER, UNKNOWN_NUMBER, UNKNOWN_NUMBER, terms.isQuotaApart and 1 or 0,
}
local owner = terms.quotaOwner
if owner ~= nil then
  told[16], told[17] = 1 + (owner.isCommon and 1 or 0) + (owner.isSpent and 2 or 0), owner.credential or UNKNOWN_NUMBER
  told[18], told[19] = owner.client or UNKNOWN_NUMBER, owner['until']
end
local block = terms.block
for i = 21, 34 do told[i] = 0 end
if block ~= nil then
  told[21] = 1 + indexOf(BLOCK_CAUSES, block.cause) + (block.isPartial and #BLOCK_CAUSES or 0)
  told[22], told[23], told[24], told[25], told[26] = block.since, block.probeAt, block.expectedAt, block.asked, block.askedUntil
  for i = 1, 8 do told[26 + i] = block.scope[i] end
end
local size = #told
local function tell(number)
  size = size + 1
  told[size] = number
end
tell(answer.now)
-- Who may not publish is served all the same: all is written by now, and others learn of it when they call.
if answer.isNews and ARGV[4] ~= '' then redis.pcall('PUBLISH', ARGV[4], ARGV[5] .. '\0' .. packDoubles(told)) end
tell(answer.againAt)
tell(answer.isNews and 1 or 0)
tell(#answer.slots)
tell(#answer.waitsWith)
tell(#answer.cuts)
for _, slot in ipairs(answer.slots) do tell(slot) end
for _, count in ipairs(answer.waitsWith) do tell(count) end
for _, cut in ipairs(answer.cuts) do
  tell(indexOf(CUT_CAUSES, cut.cause))
  tell(cut.from)
  tell(cut.to)
end
return packDoubles(told)
