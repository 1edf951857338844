/**
 * Claims the first token of a limit of a client, credential or path, if nothing is stored of the limit: a limit that is used once
 * costs Redis this instead of two runs of limit.lua. That script reads the claim when a second token is needed, by any replica.
 *
 * KEYS: the limit. ARGV: how long the claim is kept, in ms. Returns 1 if the claim is made. In the last tenth of the memory it is
 * not: limit.lua, which is called then, gives the cause.
 */
export const CLAIM_LIMIT = `
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
local memory = redis.pcall('INFO', 'memory')
if type(memory) == 'string' then
  local used, max = string.match(memory, 'used_memory:(%d+)'), string.match(memory, 'maxmemory:(%d+)')
  if max and tonumber(max) > 0 and tonumber(used) > 0.9 * tonumber(max) then return 0 end
end
redis.call('SET', KEYS[1], 'claim:' .. ARGV[1], 'PX', ARGV[1])
return 1
`;
