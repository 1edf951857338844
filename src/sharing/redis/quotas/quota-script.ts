import { CARRIED_RETRY } from '../../../core/quota/calendar/calendar-quota.ts';

/**
 * Leases parts of a calendar quota, and counts them: `QuotaKeeper` in one call. The time is that of Redis. The caller computes the
 * window of a calendar, because Redis knows no time zones; the script compares it with its time, and returns that if it differs.
 *
 * The state of a quota is a hash: `g` parts ever granted; `s` until when none are; `pp`, `po` the pacers; `m:ID` of a process: what it
 * holds, its last call (negative if it did not know of the reset yet), its last request for parts. Of a calendar: `w` the beginning of
 * the window, `u` its count, and `lw`, `lu`, `lc` those of a later one before the clock was set back, as in `CalendarCounts`. Of a rolling
 * period: `p:START` the count of a part. `r`: when an operator last reset the count, which begins a part of the period.
 *
 * A call is a `lease`; or an operator's `read` or `reset`, which have no effect on an unknown quota.
 *
 * The hash is deleted and written anew: once a script has written, Redis refuses it nothing for lack of memory.
 */
export const LEASE_QUOTA = `
local key = KEYS[1]
local me, kind, a, b = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local limit, reserve, even = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7] == 'even'
local want, ordinary, mayReserve = tonumber(ARGV[8]), ARGV[9] == '1', ARGV[10] == '1'
local overdrawn, held = tonumber(ARGV[11]), tonumber(ARGV[12])
local knownG, knownUsed, knownSince = tonumber(ARGV[13]), tonumber(ARGV[14]), tonumber(ARGV[15])
local settle, silent, sharing, late = tonumber(ARGV[16]), tonumber(ARGV[17]), tonumber(ARGV[18]), tonumber(ARGV[19])
local t = redis.call('TIME')
local at = tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
if kind == 'calendar' and (at < a or at >= b) then return {'window', tostring(at)} end
local function text(n) return string.format('%.17g', n) end
local mode, knownReset = ARGV[22], tonumber(ARGV[23])
local h = {}
local flat = redis.call('HGETALL', key)
if mode ~= 'lease' and #flat == 0 then return {'none'} end
for i = 1, #flat, 2 do h[flat[i]] = flat[i + 1] end
local function num(f) return tonumber(h[f]) end
local g, pausedUntil = num('g') or 0, num('s') or 0
local used, since, validFor, parts, partEnd = 0, 0, 0, {}, 0
local resetAt = num('r') or 0
local begunAt = resetAt <= at and resetAt or 0

if kind == 'calendar' then
  local w, lw, lu, carried = num('w'), num('lw'), num('lu'), h['lc'] == '1'
  used = num('u') or 0
  if w and a < w then
    if not lw or lw < w then lw, lu = w, used end
    carried = true
  elseif w and a > w then
    if not lw or a ~= lw then used = 0 elseif not carried then used = lu end
    if lw and a >= lw then lw, lu = nil, nil end
    carried = false
  end
  h['w'], h['lw'], h['lu'], h['lc'] = text(a), lw and text(lw), lu and text(lu), carried and '1' or nil
  since, validFor = math.max(a, begunAt), b - at
else
  local length, size, latest = a, b, nil
  for f, v in pairs(h) do
    if string.sub(f, 1, 2) == 'p:' then
      local start = tonumber(string.sub(f, 3))
      parts[#parts + 1] = {start, tonumber(v)}
      if not latest or start > latest then latest = start end
      h[f] = nil
    end
  end
  local ahead = latest and latest > at and latest - at or 0
  since = math.max(math.floor(at / size) * size, begunAt)
  local keep, present = {}, nil
  table.sort(parts, function(x, y) return x[1] < y[1] end)
  for _, p in ipairs(parts) do
    p[1] = p[1] - ahead
    if p[1] + size + length > at then
      keep[#keep + 1] = p
      used = used + p[2]
    end
  end
  parts = keep
  present = parts[#parts]
  if present and at < present[1] + size then since = present[1] else
    present = {since, 0}
    parts[#parts + 1] = present
  end
  validFor, partEnd = since + size - at, size + length
end

local function count(n)
  used = used + n
  g = g + n
  if kind == 'rolling' then parts[#parts][2] = parts[#parts][2] + n end
end

local function clear(from)
  used, resetAt, begunAt, since = 0, from, from, math.max(since, from)
  h['lw'], h['lu'], h['lc'] = nil, nil, nil
  if kind == 'rolling' then parts = {{since, 0}} end
  for f, v in pairs(h) do
    if string.sub(f, 1, 2) == 'm:' then h[f] = string.gsub(v, '^(%S+) %-?(%S+) ', '%1 -%2 ') end
  end
end

local isCleared = knownReset > resetAt and knownReset <= at
if isCleared then clear(knownReset) end
if knownG > g or isCleared then
  local missing = knownUsed - used
  if kind == 'calendar' and knownSince ~= since then missing = 0 end
  if kind == 'rolling' and knownSince + a + b <= at then missing = 0 end
  if knownSince < begunAt then missing = 0 end
  if missing > 0 then count(missing) end
  g = math.max(g, knownG)
  pausedUntil = at + settle
end
count(overdrawn)
for i = 24, #ARGV, 2 do
  local from, n = tonumber(ARGV[i]), tonumber(ARGV[i + 1])
  if kind == 'calendar' then
    if from == since then used = math.max(0, used - n) end
  else
    for _, p in ipairs(parts) do
      if p[1] == from then
        local back = math.min(n, p[2])
        p[2] = p[2] - back
        used = used - back
      end
    end
  end
end
if mode == 'reset' then clear(at) end
if pausedUntil > at + settle then pausedUntil = at end

local function limitFor(priority) return priority and limit or limit - reserve end
local function rate(priority)
  if not even then return 0 end
  if kind == 'rolling' then return 1000 * limit / a end
  local left = limitFor(priority) - used
  if left <= 0 then return 0 end
  return 1000 * left / (b - at)
end
if rate(true) > 0 then sharing = math.max(sharing, 2000 / rate(true)) end

local begins = kind == 'calendar' and since or begunAt
local members, sharers, heldByOthers, carried = 1, 0, 0, 0
for f, v in pairs(h) do
  if string.sub(f, 1, 2) == 'm:' then
    local hold, calledAt, wantedAt = string.match(v, '^(%S+) (%S+) (%S+)$')
    hold, calledAt, wantedAt = tonumber(hold), tonumber(calledAt), tonumber(wantedAt)
    if math.abs(at - math.abs(calledAt)) > silent then h[f] = nil
    elseif f ~= 'm:' .. me then
      members = members + 1
      heldByOthers = heldByOthers + hold
      if calledAt < begins then carried = carried + hold end
      if math.abs(at - wantedAt) <= sharing then sharers = sharers + 1 end
    end
  end
end

local function untilReset(priority)
  local most = limitFor(priority)
  if used < most then return 0 end
  if kind == 'calendar' then return b - at end
  local left = used
  for _, p in ipairs(parts) do
    left = left - p[2]
    if left < most then return p[1] + partEnd - at end
  end
  return partEnd
end
local function pacerDelay(last, r)
  if r == 0 or not last then return 0 end
  return math.max(0, math.min(last, at) + 1000 / r - at)
end
local pp, po = num('pp'), num('po')
local function delay(priority)
  local wait = untilReset(priority)
  if wait > 0 or not even then return wait end
  wait = pacerDelay(pp, rate(true))
  if priority then return wait end
  return math.max(wait, pacerDelay(po, rate(false)))
end
local function pace(isOrdinary)
  local r, ro = rate(true), rate(false)
  if r > 0 then pp = math.max(at - late, math.min(pp or 0, at) + 1000 / r) end
  if isOrdinary and ro > 0 then po = math.max(at - late, math.min(po or 0, at) + 1000 / ro) end
end

local function left(priority) return limitFor(priority) - used - carried end
local granted, ofReserve = 0, 0
if want > 0 and at >= pausedUntil then
  if delay(false) == 0 and left(false) > 0 then
    granted = math.min(want, left(false), math.max(1, math.floor((limit - used) / 8 / members) - held))
    if even then granted = math.min(1, granted) end
    pace(ordinary)
    count(granted)
  end
  if granted == 0 and mayReserve and delay(true) == 0 and left(true) > 0 then
    ofReserve = 1
    pace(false)
    count(1)
  end
end

h['g'], h['u'] = text(g), kind == 'calendar' and text(used) or nil
h['s'] = pausedUntil > at and text(pausedUntil) or nil
h['pp'], h['po'] = pp and text(pp), po and text(po)
h['r'] = resetAt > 0 and text(resetAt) or nil
local mine = h['m:' .. me]
local wantedAt = want > 0 and at or (mine and tonumber(string.match(mine, '(%S+)$'))) or 0
local mySince = tonumber(ARGV[21])
local isUnaware = held > 0 and mySince ~= 0 and (mySince < begunAt or (kind == 'calendar' and mySince ~= since))
if mode == 'lease' then
  h['m:' .. me] = (held + granted + ofReserve) .. ' ' .. text(isUnaware and -at or at) .. ' ' .. text(wantedAt)
end
if math.abs(at - wantedAt) <= sharing then sharers = sharers + 1 end
if kind == 'rolling' then
  for _, p in ipairs(parts) do if p[2] > 0 then h['p:' .. text(p[1])] = text(p[2]) end end
end
local all = {}
for f, v in pairs(h) do
  all[#all + 1] = f
  all[#all + 1] = v
end
if mode ~= 'read' then
  redis.call('DEL', key)
  redis.call('HSET', key, unpack(all))
  redis.call('PEXPIRE', key, math.ceil((kind == 'calendar' and b - at or a * 2) + tonumber(ARGV[20])))
end
local paused = math.max(0, pausedUntil - at)
local function list(priority)
  local least = carried > 0 and left(priority) <= 0 and math.max(paused, ${CARRIED_RETRY}) or paused
  return text(math.max(least, untilReset(priority))), text(math.max(least, delay(priority))), text(rate(priority))
end
local o1, o2, o3 = list(false)
local p1, p2, p3 = list(true)
local oldest = kind == 'calendar' and b - at or partEnd
if kind == 'rolling' then
  for _, p in ipairs(parts) do
    if p[2] > 0 then oldest = p[1] + partEnd - at break end
  end
end
return {'ok', text(at), text(granted), text(ofReserve), text(since), text(validFor), o1, o2, o3, p1, p2, p3,
  text(sharers), text(heldByOthers), text(used), text(g), text(oldest), paused > 0 and '1' or '0', text(resetAt)}
`;
