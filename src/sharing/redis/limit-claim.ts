/**
 * Claims the first token of a limit of a client, credential or path, if nothing is stored of the limit: a limit that is used once
 * costs Redis this instead of two runs of limit.lua. That script reads the claim when a second token is needed, by any replica.
 *
 * KEYS: the limit. ARGV: how long the claim is kept, in ms. Returns its time, or nothing if no claim is made. In the last tenth of the
 * memory there is none: limit.lua, which is called then, gives the cause.
 */
export const CLAIM_LIMIT = `
if redis.call('EXISTS', KEYS[1]) == 1 then return false end
local memory = redis.pcall('INFO', 'memory')
if type(memory) == 'string' then
  local used, max = string.match(memory, 'used_memory:(%d+)'), string.match(memory, 'maxmemory:(%d+)')
  if max and tonumber(max) > 0 and tonumber(used) > 0.9 * tonumber(max) then return false end
end
local time = redis.call('TIME')
local at = string.format('%.3f', 1000 * time[1] + time[2] / 1000)
redis.call('SET', KEYS[1], 'claim:' .. at, 'PX', ARGV[1])
return at
`;
